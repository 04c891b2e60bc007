/** The customers that a token or a key may read. They are looked up one by one, because there may be many. */
import { isCustomerId } from '../../domain/invoice.ts'
import { cacheShortly } from './short-cache.ts'

/** Whether the token or key with this id may read the customer. Returns a promise only when the store must be asked. */
export type CoversCustomer = (id: string, customerId: string) => boolean | Promise<boolean>

/** Remembers each answer for half a second, like tokens and keys. A text that is no customer id gives false. */
export function cacheScopes(ask: CoversCustomer): CoversCustomer {
  const scopes = cacheShortly(pair => {
    const [id = '', customerId = ''] = pair.split(' ')
    return ask(id, customerId)
  })

  return (id, customerId) => {
    if (!isCustomerId(customerId)) return false
    const pair = `${id} ${customerId}`
    return scopes.known(pair)?.value ?? scopes.find(pair, undefined).then(({ value }) => value)
  }
}
