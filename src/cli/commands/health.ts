import type { Command } from 'commander'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'

const used = ['HOST', 'PORT'] as const

/** Shorter than the time limit of a health check: 30 s in Docker, most set less. */
const patienceMs = 3_000

export function healthCommand(): Command {
  return new SettingsCommand('health')
    .description(
      'Ask the service on this machine whether it is ready. Exit code 0 when it is, else 1: for health checks of containers.',
    )
    .option('--json', 'one JSON object')
    .settings(used)
    .action(checkHealth)
}

interface Health {
  ready: boolean
  address: string
  /** Null when nothing answered. */
  status: number | null
  ms: number
  /** The problem and its remedy; null when it is ready. */
  problem: string | null
}

async function checkHealth(options: { json?: true } & Options): Promise<void> {
  const { HOST: host, PORT: port } = readSettings(options, used)
  const health = await askReady(`http://${reachable(host)}:${port}/ready`)
  if (options.json === true) {
    process.stdout.write(jsonLine(health))
    process.exitCode = health.ready ? 0 : 1
    return
  }
  if (health.problem !== null) throw new CliError(health.problem)
  process.stdout.write(`Ready: ${health.address} answered 200 in ${health.ms} ms.\n`)
}

async function askReady(address: string): Promise<Health> {
  const began = performance.now()
  const describe = (status: number | null, problem: string | null): Health => ({
    ready: problem === null,
    address,
    status,
    ms: Math.round(performance.now() - began),
    problem,
  })
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(patienceMs), redirect: 'manual' })
    const text = await answer.text()
    return describe(answer.status, answer.status === 200 ? null : explainAnswer(address, answer.status, text))
  } catch (error) {
    return describe(null, explainFailure(address, error as Error))
  }
}

/** An address that means every interface cannot be called. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function explainAnswer(address: string, status: number, text: string): string {
  const [, message = 'This is not an answer of Fatura.'] = /"message":"([^"]*)"/.exec(text) ?? []
  return `Not ready: ${address} answered ${status}. ${message}`
}

function explainFailure(address: string, { name, message, cause }: Error): string {
  if (name === 'TimeoutError') return `Not ready: ${address} did not answer within ${patienceMs / 1000} s.`
  const { code } = (cause ?? {}) as NodeJS.ErrnoException
  if (code === 'ECONNREFUSED')
    return `Not ready: nothing listens at ${address}. Is fatura serve running, with this HOST and PORT?`
  return `Not ready: ${address} cannot be asked (${code ?? message}).`
}
