/** Every state in which there is nothing to show says what is the matter, and what can be done. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { usePage } from './context.ts'
import type { Problem } from './problem.ts'
import type { Words } from './words/words.ts'

interface NoticeProps {
  title: string
  lead?: string | undefined
  tone?: 'calm' | 'warning'
  children?: ComponentChildren
}

export function Notice({ title, lead, tone = 'calm', children }: NoticeProps) {
  return (
    <section class={`notice ${tone}`} role={tone === 'warning' ? 'alert' : 'status'}>
      <h2>{title}</h2>
      {lead && <p>{lead}</p>}
      {children}
    </section>
  )
}

interface ProblemNoticeProps {
  problem: Problem
  retry(): void
  /** The way out of an invoice that is not there, and of a search that cannot be. */
  back?: (() => void) | undefined
}

export function ProblemNotice({ problem, retry, back }: ProblemNoticeProps) {
  const { words, leave, session } = usePage()
  const { kind, requestId, retryAt } = problem
  const hasNoAccess = kind === 'expired' || kind === 'revoked' || kind === 'forbidden'
  const lead = {
    expired: words.expiredLead,
    revoked: words.revokedLead,
    forbidden: words.forbiddenLead,
    limited: undefined,
    offline: words.offlineLead,
    gone: words.goneLead,
    unsearchable: words.unsearchableLead,
    broken: words.brokenLead,
  }[kind]
  return (
    <Notice title={words[kind]} lead={lead} tone="warning">
      {retryAt !== null && kind !== 'offline' && <Countdown until={retryAt} />}
      {requestId !== null && kind === 'broken' && <p class="quiet">{words.reference(requestId)}</p>}
      <p class="actions">
        {(kind === 'gone' || kind === 'unsearchable') && back && session.invoice === null ? (
          <button type="button" class="primary" onClick={back}>
            {kind === 'gone' ? words.back : words.clear}
          </button>
        ) : (
          <button type="button" class={hasNoAccess ? '' : 'primary'} onClick={retry}>
            {words.again}
          </button>
        )}
        {hasNoAccess && leave && (
          <button type="button" class="primary" onClick={leave}>
            {words.another}
          </button>
        )}
      </p>
    </Notice>
  )
}

/** Not read out every second: what counts is that it goes on by itself. */
function Countdown({ until }: { until: number }) {
  const { words, format } = usePage()
  const seconds = useSecondsUntil(until)
  return <p aria-live="off">{words.retryIn(format.count(seconds))}</p>
}

export function useSecondsUntil(until: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [])
  return Math.max(0, Math.ceil((until - now) / 1000))
}

/** What is awaited is drawn in grey; when it takes long, there is a way out of that too. */
export function Loading({ retry }: { retry(): void }) {
  const { words } = usePage()
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 6_000)
    return () => clearTimeout(timer)
  }, [])
  return (
    <Bones words={words}>
      {isSlow && (
        <p class="actions">
          {words.slow}{' '}
          <button type="button" onClick={retry}>
            {words.again}
          </button>
        </p>
      )}
    </Bones>
  )
}

export function Bones({ words, children }: { words: Words; children?: ComponentChildren }) {
  return (
    <div class="card loading" role="status">
      <p class="hidden">{words.loading}</p>
      {[1, 2, 3, 4, 5, 6].map(bone => (
        <div class="bone" key={bone} />
      ))}
      {children}
    </div>
  )
}
