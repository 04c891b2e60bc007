/** The customers of a token or a key: looked up one by one, since they may be many. */
import { isCustomerId } from '../invoice.ts'
import { createShortCache } from './short-cache.ts'

/** A promise only when the store has to be asked. */
export type CoversCustomer = (id: string, customerId: string) => boolean | Promise<boolean>

/** Caches each answer as long as tokens and keys are. A text that is no customer's id is covered by none. */
export function cacheScopes(ask: CoversCustomer, now: () => number): CoversCustomer {
  const scopes = createShortCache<true>(async pair => {
    const [id = '', customerId = ''] = pair.split(' ')
    return (await ask(id, customerId)) || null
  }, now)

  return (id, customerId) => {
    if (!isCustomerId(customerId)) return false
    const pair = `${id} ${customerId}`
    const recent = scopes.recent(pair)
    return recent === undefined
      ? scopes.find(pair).then(({ found }) => found !== null)
      : recent.found !== null
  }
}
