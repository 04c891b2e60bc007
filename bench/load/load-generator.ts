/** A process that loads a server for some seconds: reads what to ask from standard input, prints what came back. */
import { json } from 'node:stream/consumers'
import autocannon from 'autocannon'
import type { LoadOptions, LoadResult } from './load.ts'
import { hasWrk, runWrk } from './wrk.ts'

async function runAutocannon(options: LoadOptions): Promise<LoadResult> {
  const { address, requests, status, seconds, connections, rate } = options
  let count = 0
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
  instance.on('response', (_client, answered) => {
    ended = performance.now()
    if (started === 0) started = ended
    if (answered === status) count++
    else unexpected++
  })
  const { errors, timeouts } = await instance
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    answered: count,
    rate: count / ((ended - started) / 1000),
    failed: unexpected + errors + timeouts,
    busy: (user + system) / 1000 / (performance.now() - begun),
  }
}

const options = (await json(process.stdin)) as LoadOptions
// wrk keeps no pace.
const result = options.rate === undefined && hasWrk() ? await runWrk(options) : await runAutocannon(options)
process.stdout.write(JSON.stringify(result))
