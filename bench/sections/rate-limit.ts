/** What the rate limiter costs a request, by how many tokens are active: it should hardly grow. */
import { createRateLimiter } from '../../src/http/rate-limit.ts'
import { formatTable, show, spread } from '../statistics.ts'

const requests = 1_000_000
const rows = [1_000, 10_000, 100_000, 1_000_000].map(tokens => {
  const ids = Array.from({ length: tokens }, (_, n) => `fat_${n.toString(36).padStart(12, '0')}`)
  const costs = Array.from({ length: 5 }, () => {
    const take = createRateLimiter({ requests: 6_000, seconds: 60 })
    const begun = performance.now()
    for (let n = 0; n < requests; n++) take(ids[n % tokens] as string)
    return ((performance.now() - begun) * 1e6) / requests
  })
  return [show(tokens, 0), spread(costs, 0)]
})
process.stdout.write(`${formatTable(['Active tokens', 'ns a request (least–most)'], rows)}\n`)
