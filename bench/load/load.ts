/** Loads a server from another process, and says what that cost the server. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { undoAtEnd } from '../servers/clean-up.ts'
import { cpuSince, readCpu } from './process-cost.ts'

export interface LoadRequest {
  path: string
  headers: Record<string, string>
}

export interface LoadOptions {
  address: string
  requests: readonly LoadRequest[]
  /** What every answer's status has to be. */
  status: number
  seconds: number
  connections: number
  /** So many requests a second over all connections; as many as are answered unless given. */
  rate?: number
}

export interface LoadResult {
  answered: number
  /** Answers a second, from the first to the last. */
  rate: number
  /** Answers of another status, and requests without an answer. */
  failed: number
  /** How much of one core the load itself took: near 1, it is the load that is measured, and not the server. */
  busy: number
}

export interface Measured extends LoadResult {
  /** CPU of the server's process and its descendants, in microseconds a request. */
  cpu: number
  /** CPU of the database server, likewise; NaN without one. */
  databaseCpu: number
  /** CPU of both. */
  wholeCpu: number
}

export interface Loaded {
  name: string
  address: string
  pid: number
  databasePid: number | null
  requests: readonly LoadRequest[]
  status: number
  rate?: number
}

const generator = fileURLToPath(new URL('load-generator.ts', import.meta.url))
export const connections = 32

/** Throws when any answer is not the expected one: what fails fast would look good. */
export async function loadServer(server: Loaded, seconds: number): Promise<Measured> {
  const { name, address, requests, status, rate, pid, databasePid } = server
  const [before, databaseBefore] = [readCpu(pid), databasePid === null ? null : readCpu(databasePid)]
  const result = await runGenerator<LoadResult>(generator, {
    address,
    requests,
    status,
    seconds,
    connections,
    ...(rate && { rate }),
  })
  const used = cpuSince(before, pid)
  const databaseUsed = databaseBefore && databasePid ? cpuSince(databaseBefore, databasePid) : null
  if (result.failed > 0 || result.answered === 0)
    throw new Error(`${name}: ${result.failed} requests of ${result.answered + result.failed} failed.`)
  return {
    ...result,
    cpu: used / result.answered,
    databaseCpu: databaseUsed === null ? Number.NaN : databaseUsed / result.answered,
    wholeCpu: (used + (databaseUsed ?? 0)) / result.answered,
  }
}

/** A generator is a program that reads its options and writes its result, both JSON. */
export async function runGenerator<Result>(
  program: string,
  options: object,
  onStart: (pid: number | undefined) => void = () => {},
): Promise<Result> {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const stop = undoAtEnd(async () => void child.kill('SIGKILL'))
  onStart(child.pid)
  // Its end without an answer is noticed below.
  child.stdin.on('error', () => {})
  child.stdin.end(JSON.stringify(options))
  const answer = await text(child.stdout)
  await stop()
  if (answer === '') throw new Error('The load generator ended without an answer.')
  return JSON.parse(answer)
}
