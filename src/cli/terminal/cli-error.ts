/** A failure that is not a fault of the program: its message is one line with a remedy, without a stack. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, { exitCode = 1, ...options }: ErrorOptions & { exitCode?: number } = {}) {
    super(message, options)
    this.exitCode = exitCode
  }
}
