/** Servers as processes of their own. Their output goes to files: the service's log is written as it would be anywhere. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync, truncateSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { undoAtEnd } from './clean-up.ts'

export interface RunningServer {
  pid: number
  /** As in http://127.0.0.1:12345. */
  address: string
  /** Empties the file of its output, which grows by a line a request. */
  emptyLog(): void
  stop(): Promise<void>
}

const patience = 20_000
export const entryPoint = fileURLToPath(new URL('../../bin/fatura.js', import.meta.url))

/** Starts a program of ours under this Node; resolves once it says where it listens. */
export async function startServer(
  folder: string,
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<RunningServer> {
  const logs = join(folder, 'logs')
  await mkdir(logs, { recursive: true })
  const log = join(logs, `${name}.log`)
  await rm(log, { force: true })
  const output = openSync(log, 'a')
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', SHUTDOWN_DELAY: '0s', ...env },
    stdio: ['ignore', output, output],
  })
  const stop = undoAtEnd(async () => {
    await stopChild(child)
    await rm(log, { force: true })
  })
  for (const started = Date.now(); Date.now() - started < patience; await sleep(50)) {
    const said = readFileSync(log, 'utf8')
    // The admin port is listened to first; it is not the one that is meant.
    const lines = said.split('\n').filter(line => !line.includes('listening for administration'))
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(lines.join('\n')) ?? []
    if (address !== undefined)
      return { pid: child.pid as number, address, emptyLog: () => truncateSync(log), stop }
    if (child.exitCode !== null) throw new Error(`${name} ended: ${said.trim()}`)
  }
  throw new Error(`${name} did not start within ${patience / 1000} s.`)
}

/** `fatura sync` over both sandboxes, without keys of anybody. */
export function spawnSync(
  url: string,
  stripe: string,
  invoiceXpress: string,
  ...args: string[]
): ChildProcess {
  const keys = { STRIPE_API_KEY: 'sk_test_sandbox', INVOICEXPRESS_API_KEY: 'ix_test_sandbox' }
  const bases = { STRIPE_API_BASE: stripe, INVOICEXPRESS_API_BASE: invoiceXpress }
  return spawn(process.execPath, [entryPoint, 'sync', ...args], {
    env: { ...process.env, DATABASE_URL: url, LOG_LEVEL: 'error', ...keys, ...bases },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  const lastResort = setTimeout(() => child.kill('SIGKILL'), 12_000)
  child.kill('SIGTERM')
  await ended
  clearTimeout(lastResort)
}
