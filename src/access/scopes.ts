/** The customers that a token or a key is for: asked for one by one, since they may be many. */
import { isCustomerId } from '../invoice.ts'
import { ShortCache } from './short-cache.ts'

/** A promise only when the store has to be asked. */
export type CoversCustomer = (id: string, customerId: string) => boolean | Promise<boolean>

/** Remembers each answer as long as all that the store says of tokens and keys. What is no customer's id is for nobody. */
export function cacheScopes(ask: CoversCustomer, now: () => number): CoversCustomer {
  const scopes = new ShortCache<true>(async pair => {
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
