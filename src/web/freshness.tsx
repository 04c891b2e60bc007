/** The age of the records; announces changes of the list to a screen reader. */
import { usePage } from './context.ts'
import { useNow } from './notice.tsx'

export function Freshness({ syncedAt, changes }: { syncedAt: Date | null; changes: number }) {
  const { words, format } = usePage()
  // A clock that runs behind the service's makes nothing younger than now.
  const now = Math.max(useNow(10_000), Date.now())
  return (
    <p class="freshness row quiet on-screen">
      <span class="dot" aria-hidden="true" />
      {syncedAt === null ? (
        words.neverUpdated
      ) : (
        <time dateTime={syncedAt.toISOString()} title={format.moment(syncedAt)}>
          {words.updated(format.ago(syncedAt, now))}
        </time>
      )}
      <span class="hidden" role="status">
        {changes > 0 && `${words.live} (${changes})`}
      </span>
    </p>
  )
}
