/** Control addresses of the local Stripe. */
import { type Control, controlError, faultControls, readChoice, readNumber } from '../control.ts'
import { type Faults, faultNames, routeNames } from '../faults.ts'
import type { StripeAccount } from './account.ts'
import { type Permission, permissions } from './routes.ts'
import type { DeliverOptions, Delivery } from './webhooks.ts'

/** Parts of the sandbox that the control addresses change. */
export interface Controlled {
  account: StripeAccount
  faults: Faults
  forbidden: Set<Permission>
  /** Signs the events and posts them to the subscriber one after the other. Refused events are sent again by the next call. */
  deliver(options?: DeliverOptions): Promise<Delivery[]>
  subscribe(url: string, secret: string): void
}

export const stripeControls: Record<string, Control<Controlled>> = {
  advance({ account }, search) {
    const before = account.events.length
    account.advance(readNumber(search, 'seconds', 86_400))
    return { clock: account.clock, events: account.events.length - before }
  },
  ...faultControls(faultNames, routeNames),
  forbid({ forbidden }, search) {
    forbidden.add(readChoice(search, 'permission', permissions))
    return { forbidden: [...forbidden] }
  },
  permit({ forbidden }, search) {
    if (search.has('permission')) forbidden.delete(readChoice(search, 'permission', permissions))
    else forbidden.clear()
    return { forbidden: [...forbidden] }
  },
  subscribe({ subscribe }, search) {
    const url = search.get('url') ?? ''
    if (!URL.canParse(url) || new URL(url).protocol !== 'http:')
      throw controlError('url must be an address that begins with http://.')
    const secret = search.get('secret')
    if (!secret) throw controlError('secret must be given.')
    subscribe(url, secret)
    return { url }
  },
  async deliver({ deliver }, search) {
    const order = readChoice(search, 'order', ['as is', 'shuffled'] as const, 'as is')
    const options: DeliverOptions = { order }
    for (const name of ['duplicate', 'drop', 'since'] as const)
      if (search.has(name)) options[name] = readNumber(search, name, 0)
    const deliveries = await deliver(options).catch((error: Error) => {
      throw controlError(error.message)
    })
    const acknowledged = deliveries.filter(({ status }) => status >= 200 && status < 300).length
    return { sent: deliveries.length, acknowledged }
  },
}
