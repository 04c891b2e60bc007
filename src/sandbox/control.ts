/** The sandbox's own addresses, under /_sandbox/: to let time pass and things go wrong from another program. */
import { type Fault, type Faults, faultNames, type RouteName, routeNames } from './faults.ts'
import type { StripeAccount } from './stripe-account.ts'
import { StripeError } from './stripe-query.ts'
import type { DeliverOptions, Delivery } from './webhooks.ts'

export interface Controlled {
  account: StripeAccount
  faults: Faults
  deliver(options?: DeliverOptions): Promise<Delivery[]>
  subscribe(url: string, secret: string): void
}

type Control = (sandbox: Controlled, search: URLSearchParams) => object | Promise<object>

const controls: Record<string, Control> = {
  advance({ account }, search) {
    const before = account.events.length
    account.advance(readNumber(search, 'seconds', 86_400))
    return { clock: account.clock, events: account.events.length - before }
  },
  faults({ faults }, search) {
    const route = readChoice(search, 'route', [...routeNames, '*'] as (RouteName | '*')[])
    const fault = readChoice(search, 'fault', [...faultNames] as Fault[])
    const retryAfter = search.get('retry_after')
    faults.set(route, fault, {
      ...(search.has('times') ? { times: readNumber(search, 'times', 1) } : {}),
      ...(retryAfter === null ? {} : { retryAfter }),
    })
    return { route, fault }
  },
  clear({ faults }) {
    faults.clear()
    return {}
  },
  subscribe({ subscribe }, search) {
    const url = search.get('url') ?? ''
    if (!URL.canParse(url) || new URL(url).protocol !== 'http:')
      throw new StripeError(400, {
        message: 'url must be an address that begins with http://.',
        param: 'url',
      })
    const secret = search.get('secret')
    if (!secret) throw new StripeError(400, { message: 'secret must be given.', param: 'secret' })
    subscribe(url, secret)
    return { url }
  },
  async deliver({ deliver }, search) {
    const order = readChoice(search, 'order', ['as is', 'shuffled'] as const, 'as is')
    const options: DeliverOptions = { order }
    for (const name of ['duplicate', 'drop', 'since'] as const)
      if (search.has(name)) options[name] = readNumber(search, name, 0)
    const deliveries = await deliver(options).catch((error: Error) => {
      throw new StripeError(400, { message: error.message })
    })
    const acknowledged = deliveries.filter(({ status }) => status >= 200 && status < 300).length
    return { sent: deliveries.length, acknowledged }
  },
}

/** Answers a request under /_sandbox/. */
export async function control(sandbox: Controlled, method: string, url: URL): Promise<object> {
  const name = url.pathname.slice('/_sandbox/'.length)
  const found = Object.hasOwn(controls, name) ? controls[name] : undefined
  if (found === undefined || method !== 'POST')
    throw new StripeError(404, {
      message: `POST /_sandbox/ and one of ${Object.keys(controls).join(', ')}; not ${method} ${url.pathname}.`,
    })
  return found(sandbox, url.searchParams)
}

function readNumber(search: URLSearchParams, param: string, fallback: number): number {
  const text = search.get(param)
  if (text === null) return fallback
  if (!/^\d{1,12}(\.\d{1,6})?$/.test(text))
    throw new StripeError(400, { message: `${param} must be a number, not '${text}'.`, param })
  return Number(text)
}

function readChoice<T extends string>(
  search: URLSearchParams,
  param: string,
  choices: readonly T[],
  fallback?: T,
): T {
  const text = search.get(param) ?? fallback
  const choice = choices.find(choice => choice === text)
  if (choice === undefined)
    throw new StripeError(400, { message: `${param} must be one of ${choices.join(', ')}.`, param })
  return choice
}
