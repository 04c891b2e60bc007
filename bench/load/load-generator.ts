/** A process that loads a server for some seconds: reads what to ask from standard input, prints what came back. */
import { json } from 'node:stream/consumers'
import autocannon from 'autocannon'
import { quantile } from '../statistics.ts'
import type { LoadOptions, LoadResult } from './load.ts'
import { hasWrk, runWrk } from './wrk.ts'

async function runAutocannon(options: LoadOptions): Promise<LoadResult> {
  const { address, requests, status, seconds, connections, rate } = options
  const took: number[] = []
  let unexpected = 0
  let started = 0
  let client = 0
  const cpuBefore = process.cpuUsage()
  const begun = performance.now()
  const instance = autocannon({
    url: address,
    connections,
    duration: seconds,
    timeout: 10,
    ...(rate && { overallRate: rate }),
    setupClient(one) {
      // Each connection goes through all the requests, but begins elsewhere.
      const first = Math.floor((client++ * requests.length) / connections)
      one.setRequests(
        [...requests.slice(first), ...requests.slice(0, first)].map(request => ({
          method: 'GET',
          ...request,
        })),
      )
    },
  })
  let ended = begun
  instance.on('response', (_client, answered, _bytes, milliseconds) => {
    ended = performance.now()
    if (started === 0) started = ended
    if (answered === status) took.push(milliseconds)
    else unexpected++
  })
  const { errors, timeouts } = await instance
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    answered: took.length,
    rate: took.length / ((ended - started) / 1000),
    p50: quantile(took, 0.5),
    p99: quantile(took, 0.99),
    failed: unexpected + errors + timeouts,
    busy: (user + system) / 1000 / (performance.now() - begun),
  }
}

const options = (await json(process.stdin)) as LoadOptions
// wrk keeps no pace.
const result = options.rate === undefined && hasWrk() ? await runWrk(options) : await runAutocannon(options)
process.stdout.write(JSON.stringify(result))
