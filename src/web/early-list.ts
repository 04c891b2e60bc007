/** The rows are on their way before anything is drawn. */
import type { CallOptions, Client } from '../client/client.ts'
import type { EarlyAnswer } from './context.ts'
import { readPlace } from './place.ts'
import { listKey, listQuery } from './question.ts'
import type { Session } from './session.ts'

type OnWait = NonNullable<CallOptions['onWait']>

/** Null when something else than the list is looked at first. */
export function askEarly(client: Client, { customer, invoice }: Session): EarlyAnswer | null {
  const place = readPlace(location.search)
  if (invoice !== null || place.invoice !== null || place.isStatement) return null
  const query = listQuery(place)
  let told: Parameters<OnWait> | null = null
  let listener: OnWait | null = null
  const onWait: OnWait = (...wait) => {
    told = wait
    listener?.(...wait)
  }
  const answer = client.invoices.list(customer, query, { onWait })
  // Whoever draws the list hears of it.
  answer.catch(() => {})
  return {
    key: listKey(customer, query),
    answer,
    listen(onWait) {
      listener = onWait
      if (told !== null) onWait(...told)
    },
  }
}
