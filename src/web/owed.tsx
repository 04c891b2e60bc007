/** Amounts to pay, by currency; and the request for the sums that they and the chart show. */
import type { CustomerSummary } from '../client/client.ts'
import { usePage } from './context.ts'
import { useAnswer } from './use-live.ts'

/** The sum of each currency; an empty line while they are awaited. */
export function Owed({ summary }: { summary: CustomerSummary | null }) {
  const { words, format } = usePage()
  const lines = summary?.currencies.flatMap(({ currency, credited_cents, statuses }) => {
    const open = statuses.find(({ status }) => status === 'open')
    if (open === undefined) return []
    // A credit note reduces what is owed, and leaves the invoice open.
    return words.owed(
      format.amount(open.total_cents - credited_cents, currency),
      format.count(open.count),
      open.count,
    )
  }) ?? ['\u00a0']
  return (
    <div class="owed row">
      {(lines.length > 0 ? lines : [words.nothingOwed]).map(line => (
        <p key={line}>{line}</p>
      ))}
    </div>
  )
}

/** Read once the list is there, so that the first rows never wait for it, and again whenever the list's ETag changes. */
export function useSummary(etag: string | null): CustomerSummary | null {
  const { client, session } = usePage()
  const { customer } = session
  const answer = useAnswer(etag !== null && (call => client.summary(customer, call)), [
    etag,
    client,
    customer,
  ])
  return answer?.data ?? null
}
