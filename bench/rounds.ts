/** Rounds in which every target has its turn, so that whatever else the machine does falls on all of them alike. */
import { openConnection } from './load/ask.ts'
import { loadServer, type Measured } from './load/load.ts'
import { readPeakMemoryMb } from './load/process-cost.ts'
import type { Target } from './load/targets.ts'
import { median } from './statistics.ts'

export interface Rounds {
  targets: readonly Target[]
  /** By target, then by round. */
  measured: ReadonlyMap<string, readonly Measured[]>
  /** After the last round. */
  peakMemoryMb: ReadonlyMap<string, number>
}

/** The order turns by one with every round. */
export async function runRounds(
  targets: readonly Target[],
  rounds: number,
  seconds: number,
): Promise<Rounds> {
  process.stderr.write(`Warming up ${targets.length} targets …\n`)
  for (const target of targets) {
    await checkAnswers(target)
    await loadServer(target, Math.ceil(seconds / 2))
  }
  const measured = new Map<string, Measured[]>(targets.map(({ key }) => [key, []]))
  for (let round = 0; round < rounds; round++) {
    process.stderr.write(
      `Round ${round + 1} of ${rounds}, about ${Math.ceil(targets.length * (seconds + (seconds > 1 ? 2.2 : 0.6)))} s …\n`,
    )
    const first = round % targets.length
    for (const target of [...targets.slice(first), ...targets.slice(0, first)]) {
      // Connections to a database that nobody used for 10 s are closed: a long turn begins with opening them again.
      if (seconds > 1) await loadServer(target, 1)
      measured.get(target.key)?.push(await loadServer(target, seconds))
      target.emptyLog()
    }
  }
  const peakMemoryMb = new Map(targets.map(({ key, pid }) => [key, readPeakMemoryMb(pid)]))
  return { targets, measured, peakMemoryMb }
}

/** Every answer has the status it should have: not every load generator tells 200 from 304. */
async function checkAnswers({ name, address, requests, status }: Target): Promise<void> {
  const { ask, close } = openConnection(address)
  for (const request of requests) {
    const answer = await ask(request)
    if (answer.status !== status) throw new Error(`${name} answered ${answer.status} instead of ${status}.`)
  }
  close()
}

/** One figure of a target, round by round. */
export function figures({ measured }: Rounds, key: string, figure: keyof Measured): number[] {
  return (measured.get(key) ?? []).map(result => result[figure])
}

/** How one target stands to another, round by round. */
export function ratios(rounds: Rounds, key: string, to: string, figure: keyof Measured): number[] {
  const others = figures(rounds, to, figure)
  return figures(rounds, key, figure).map((value, round) => value / (others[round] ?? Number.NaN))
}

export function typical(rounds: Rounds, key: string, figure: keyof Measured): number {
  return median(figures(rounds, key, figure))
}
