/** Mutants that no test can kill, and the reason. */
export interface Survivor {
  file: string
  /** The changed line. */
  mutant: string
  why: string
}

export const survivors: readonly Survivor[] = []
