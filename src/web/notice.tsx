/** Notices for every state without content. A notice gives the reason and the possible actions. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { usePage } from './context.ts'
import { Button, Heading } from './controls.tsx'
import { EmailSignIn } from './email-sign-in.tsx'
import type { Problem } from './problem.ts'
import type { Words } from './words.ts'

interface NoticeProps {
  title: string
  lead?: string
  tone?: 'calm' | 'warning'
  details?: ComponentChildren
  children?: ComponentChildren
}

export function Notice({ title, lead, tone = 'calm', details, children }: NoticeProps) {
  return (
    <section class={`notice stack ${tone}`} role={tone === 'warning' ? 'alert' : 'status'}>
      <Heading rank={2}>{title}</Heading>
      {lead && <p>{lead}</p>}
      {details}
      {children && <div class="actions row">{children}</div>}
    </section>
  )
}

interface ProblemNoticeProps {
  problem: Problem
  retry(): void
  /** Whether an earlier answer stays visible. */
  hasContent: boolean
  /** Leaves an invoice that does not exist, or a search that the service refuses. */
  back?: (() => void) | undefined
}

export function ProblemNotice({ problem, retry, hasContent, back }: ProblemNoticeProps) {
  const { words, leave, session, askHost, signIn } = usePage()
  const { kind, requestId, retryAt } = problem
  const hasNoAccess = kind === 'expired' || kind === 'revoked' || kind === 'forbidden'
  const canGoBack = (kind === 'gone' || kind === 'unsearchable') && back && session.invoice === null
  const details = (
    <>
      {retryAt !== null && kind !== 'offline' && (
        <p>
          <Countdown until={retryAt} write={words.retryIn} />
        </p>
      )}
      {requestId !== null && kind === 'broken' && <p class="quiet">{words.reference(requestId)}</p>}
    </>
  )
  const isFirst = kind === 'offline' && !hasContent
  const lead = isFirst ? words.offlineFirstLead : words[`${kind}Lead`]
  const tryAgain = () => {
    if (hasNoAccess) askHost?.()
    retry()
  }
  if (hasNoAccess && leave && signIn)
    return (
      <Notice title={words[kind]} lead={words.newLinkLead} tone="warning">
        <EmailSignIn words={words} />
      </Notice>
    )
  return (
    <Notice title={words[kind]} lead={lead} tone="warning" details={details}>
      {canGoBack ? (
        <Button text={kind === 'gone' ? words.back : words.clear} class="primary" onClick={back} />
      ) : (
        <Button text={words.again} class="primary" onClick={tryAgain} />
      )}
    </Notice>
  )
}

/** `aria-live="off"` keeps screen readers from announcing every second. The retry happens by itself. */
export function Countdown({ until, write }: { until: number; write(seconds: string): string }) {
  const { format } = usePage()
  const seconds = Math.max(0, Math.ceil((until - useNow(500)) / 1000))
  return <span aria-live="off">{write(format.count(seconds))}</span>
}

/** Returns the current time in milliseconds since 1970, updated at each interval. */
export function useNow(intervalMs: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), intervalMs)
    return () => clearInterval(timer)
  }, [])
  return now
}

/** Shows outlines of the expected content. After six seconds a button to try again appears. */
export function Loading({ words, retry, rows }: { words: Words; retry?: () => void; rows?: number }) {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 6_000)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div class={`card loading stack ${rows ? 'rows' : ''}`} role="status">
      <p class="hidden">{words.loading}</p>
      {isSlow && retry && (
        <p class="actions row">
          {words.slow} <Button text={words.again} onClick={retry} />
        </p>
      )}
      {Array.from({ length: rows ?? 6 }, (_, bone) => (
        <div class="bone" key={bone} />
      ))}
    </div>
  )
}
