/** Requests the list before anything is drawn. */
import type { CallOptions, Client } from '../client/client.ts'
import type { EarlyAnswer } from './context.ts'
import type { Session } from './session.ts'
import { listKey, listQuery, readUrlState } from './url-state.ts'

type OnWait = NonNullable<CallOptions['onWait']>

/** Null when another view than the list is shown first. */
export function askEarly(client: Client, { customer, invoice }: Session): EarlyAnswer | null {
  const state = readUrlState(location.search)
  if (invoice !== null || state.invoice !== null || state.isStatement) return null
  const query = listQuery(state)
  let lastWait: Parameters<OnWait> | null = null
  let listener: OnWait | null = null
  const onWait: OnWait = (...wait) => {
    lastWait = wait
    listener?.(...wait)
  }
  const answer = client.invoices.list(customer, query, { onWait })
  // The list handles the rejection once it is drawn.
  answer.catch(() => {})
  return {
    key: listKey(customer, query),
    answer,
    listen(onWait) {
      listener = onWait
      if (lastWait !== null) onWait(...lastWait)
    },
  }
}
