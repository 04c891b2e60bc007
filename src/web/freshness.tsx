/** Shows the age of the records, and announces changes of the list to screen readers. */
import { usePage } from './context.ts'
import { useNow } from './notice.tsx'

export function Freshness({ syncedAt, changes }: { syncedAt: Date | null; changes: number }) {
  const { words, format } = usePage()
  // `useNow` causes a rendering every 10 seconds. `Date.now()` is newer when something else causes a rendering in between.
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
