/** How old the records are; says so when the list changed while somebody looked. */
import { useEffect, useState } from 'preact/hooks'
import { usePage } from './context.ts'

export function Freshness({ syncedAt, changes }: { syncedAt: Date | null; changes: number }) {
  const { words, format } = usePage()
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 10_000)
    return () => clearInterval(timer)
  }, [])
  // A clock that runs behind the service's makes nothing younger than now.
  const seen = Math.max(now, Date.now())
  return (
    <p class="freshness">
      <span class="dot" aria-hidden="true" />
      {syncedAt === null ? (
        words.neverUpdated
      ) : (
        <time dateTime={syncedAt.toISOString()} title={format.moment(syncedAt)}>
          {words.updated(format.ago(syncedAt, seen))}
        </time>
      )}
      <span class="hidden" role="status">
        {changes > 0 && `${words.live} (${changes})`}
      </span>
    </p>
  )
}
