import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'

const used = ['HOST', 'PORT'] as const

/** Timeout of the request, shorter than the timeouts of container health checks. Docker's default is 30 seconds. */
const patienceMs = 3_000

export const healthCommand = () =>
  new SettingsCommand('health')
    .description(
      'Ask the service on this machine whether it is ready. The exit code is 0 when it is ready, else 1. Use it for health checks of containers.',
    )
    .option('--json', 'print one JSON object')
    .settings(used)
    .action(checkHealth)

async function checkHealth(options: { json?: true } & Options): Promise<void> {
  const { HOST: host, PORT: port } = readSettings(options, used)
  const address = `http://${reachable(host)}:${port}/ready`
  const began = performance.now()
  const { status, problem } = await askReady(address)
  const ms = Math.round(performance.now() - began)
  if (options.json === true) {
    process.stdout.write(jsonLine({ ready: problem === null, address, status, ms, problem }))
    process.exitCode = problem === null ? 0 : 1
  } else if (problem !== null) throw new CliError(problem)
  else process.stdout.write(`Ready: ${address} answered 200 in ${ms} ms.\n`)
}

/** `status` is null when no answer came. `problem` is null when the service is ready. */
async function askReady(address: string): Promise<{ status: number | null; problem: string | null }> {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(patienceMs), redirect: 'manual' })
    const [, message = 'Another program than Fatura answered.'] =
      /"message":"([^"]*)"/.exec(await answer.text()) ?? []
    const { status } = answer
    return { status, problem: status === 200 ? null : `Not ready: ${address} answered ${status}. ${message}` }
  } catch (error) {
    return { status: null, problem: explainFailure(address, error as Error) }
  }
}

/** Returns a host that can be called. 0.0.0.0 and :: mean all interfaces, and cannot be called. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function explainFailure(address: string, { name, message, cause }: Error): string {
  if (name === 'TimeoutError') return `Not ready: ${address} did not answer within ${patienceMs / 1000} s.`
  const { code } = (cause ?? {}) as NodeJS.ErrnoException
  if (code === 'ECONNREFUSED')
    return `Not ready: nothing listens at ${address}. Is fatura serve running, with this HOST and PORT?`
  return `Not ready: ${address} cannot be asked (${code ?? message}).`
}
