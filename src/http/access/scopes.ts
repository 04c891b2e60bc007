/** The customers of a token or a key: looked up one by one, since they may be many. */
import { isCustomerId } from '../../domain/invoice.ts'
import { cacheShortly } from './short-cache.ts'

/** A promise only when the store has to be asked. */
export type CoversCustomer = (id: string, customerId: string) => boolean | Promise<boolean>

/** Remembers each answer as long as tokens and keys. A text that is no customer's id is covered by none. */
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
