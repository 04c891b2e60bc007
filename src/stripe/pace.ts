/** The pace of requests to Stripe. */
import type { Pace } from '../upstream/paced-calls.ts'
import { isStripesOwn, type StripeOptions } from './client.ts'

const patient = { attempts: 6, patienceMs: 60_000 }
/** Below Stripe's limits: 100 a second in live mode, 25 in test mode, and 25 for each endpoint. */
const livePace: Pace = { perSecond: 80, perEndpoint: 20, slowlyPerSecond: 4, ...patient }
const testPace: Pace = { ...livePace, perSecond: 20 }
/** A sandbox has no limits by default. */
const sandboxPace: Pace = { perSecond: 10_000, slowlyPerSecond: 100, ...patient }

export function paceFor({ base, apiKey }: StripeOptions): Pace {
  // A live key leads to Stripe, also through a proxy.
  if (/^.k_live_/.test(apiKey)) return livePace
  if (!isStripesOwn(base)) return sandboxPace
  return /^.k_test_/.test(apiKey) ? testPace : livePace
}
