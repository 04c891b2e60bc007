/**
 * Delivers changes to each outgoing webhook separately. Reads the feed of changes from the webhook's cursor, sends the
 * changes, and moves the cursor after the answers. When the process is killed, at most `sentAtOnce` changes are sent
 * again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { writeCursor } from '../../domain/change.ts'
import { webhookSent } from '../../sources/calls/telemetry.ts'
import type { Delivery, OutgoingWebhook, StoredChange } from '../../store/change-store.ts'
import type { WriteStore } from '../../store/store.ts'
import { type Answer, sendWebhook } from './send-webhook.ts'
import { signWebhook } from './sign-webhook.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** Pauses after failed attempts, as Standard Webhooks advises: ten attempts in three days. */
const pausesMs = [
  ...[5 * second, 5 * minute, 30 * minute],
  ...[2, 5, 10, 14, 20, 24].map(hours => hours * hour),
] as const
export const maxAttempts = pausesMs.length + 1

/** Number of invoices whose changes are sent at the same time. Changes of one invoice are sent one after the other. */
export const sentAtOnce = 10
const readAtOnce = 100
const checkEveryMs = 250

export interface DeliverOptions {
  store: Pick<WriteStore, 'listWebhooks' | 'readChanges' | 'transaction'>
  /** Whether webhooks may use plain http and private addresses. */
  allowPrivate: boolean
  log: Logger
  signal: AbortSignal
  send?: typeof sendWebhook
  now?: () => number
}

/** Runs until the signal aborts and all requests on their way are answered. */
export async function deliverChanges(options: DeliverOptions): Promise<void> {
  const { store, log, signal } = options
  const underway = new Map<string, Promise<void>>()
  while (!signal.aborted) {
    try {
      for (const { id, state } of await store.listWebhooks()) {
        if (state !== 'active' || underway.has(id)) continue
        const following = followFeed(id, options)
          .catch(err =>
            log.error({ err, webhook: id }, 'outgoing webhooks could not be sent and are tried again'),
          )
          .finally(() => underway.delete(id))
        underway.set(id, following)
      }
    } catch (err) {
      log.error({ err }, 'outgoing webhooks could not be read from the store and are tried again')
    }
    await pause(second, signal)
  }
  await Promise.all(underway.values())
}

/** Delivers changes to one webhook until it is no longer active or the signal aborts. */
async function followFeed(id: string, options: DeliverOptions): Promise<void> {
  const { store, log, signal, now = Date.now } = options
  /** Changes that were delivered while an earlier change failed. The cursor cannot pass the failed change. */
  const delivered: Delivered = { life: '', seqs: new Set() }
  while (!signal.aborted) {
    const webhook = (await store.listWebhooks()).find(each => each.id === id)
    if (webhook === undefined || webhook.state !== 'active') return
    const dueMs = remainingPauseMs(webhook, now())
    const delivery = dueMs > 0 ? null : await deliverBatch(webhook, delivered, options)
    if (delivery === null) {
      await pause(dueMs > 0 ? Math.min(dueMs, second) : checkEveryMs, signal)
      continue
    }
    if (delivery.error !== null)
      log.warn(
        { webhook: id, attempts: delivery.attempts, state: delivery.state },
        `the outgoing webhook ${delivery.error}`,
      )
    if (!(await store.transaction(tx => tx.saveDelivery(id, webhook.cursor, delivery))))
      delivered.seqs.clear()
  }
}

/**
 * Milliseconds that remain of the pause. A `next_at` beyond the whole pause comes from a clock that was ahead and
 * counts as zero.
 */
function remainingPauseMs({ next_at, attempts }: OutgoingWebhook, nowMs: number): number {
  const remainingMs = (next_at ?? 0) - nowMs
  return remainingMs > (pausesMs[attempts - 1] ?? 0) ? 0 : remainingMs
}

/**
 * Sequence numbers of changes that the receiver accepted beyond the webhook's cursor. They are valid only in this
 * `life` of the store, because a restored store begins a new life.
 */
interface Delivered {
  life: string
  seqs: Set<number>
}

/** Returns null when there is nothing to deliver. */
async function deliverBatch(
  webhook: OutgoingWebhook,
  delivered: Delivered,
  { store, allowPrivate, send = sendWebhook, now = Date.now }: DeliverOptions,
): Promise<Delivery | null> {
  const { cursor, attempts, customers } = webhook
  const page = await store.readChanges(null, cursor, readAtOnce)
  if (page === null)
    return {
      ...webhook,
      state: 'disabled',
      error:
        'was not asked, because changes after its cursor are no longer kept. Choose a later time with "fatura webhook replay"',
    }
  if (page.changes.length === 0) return null
  const { life } = page
  if (life !== delivered.life) {
    delivered.life = life
    delivered.seqs.clear()
  }
  const wanted = customers && new Set(customers)
  // After a failure, a single attempt shows whether the receiver works again.
  const { some, until } = chooseChanges(page.changes, wanted, attempts === 0 ? sentAtOnce : 1)
  const answers = await Promise.all(
    some.map(async (change): Promise<Answer> => {
      if (delivered.seqs.has(change.seq)) return { status: 200, outcome: '' }
      const cursor = writeCursor({ life, seq: change.seq })
      const body = writeBody(change, cursor)
      const answer = await send(
        webhook.url,
        signWebhook(webhook, `msg_${cursor}`, body, now()),
        body,
        allowPrivate,
      )
      if (isSuccess(answer)) delivered.seqs.add(change.seq)
      webhookSent.publish({ isDelivered: isSuccess(answer), seconds: Math.max(0, now() - change.at) / 1000 })
      return answer
    }),
  )
  const failed = answers.findIndex(answer => !isSuccess(answer))
  const reached = failed === -1 ? until : (some[failed] as StoredChange).seq - 1
  for (const seq of delivered.seqs) if (seq <= reached) delivered.seqs.delete(seq)
  if (failed === -1) return { cursor: reached, state: 'active', attempts: 0, next_at: null, error: null }
  const { status, outcome } = answers[failed] as Answer
  const failures = reached > cursor && failed > 0 ? 1 : attempts + 1
  const pauseMs = pausesMs[failures - 1]
  const isOver = status === 410 || pauseMs === undefined
  return {
    cursor: reached,
    state: isOver ? 'disabled' : 'active',
    attempts: failures,
    next_at: isOver ? null : now() + (pauseMs ?? 0),
    error: outcome,
  }
}

/**
 * Chooses changes to send, at most one per invoice. The cursor may move to `until` when all of them are delivered.
 * `customers` null means all customers.
 */
function chooseChanges(changes: readonly StoredChange[], customers: Set<string> | null, atMost: number) {
  const some = new Map<string, StoredChange>()
  let until = 0
  for (const change of changes) {
    const key = `${change.customer_id} ${change.invoice_id}`
    if (customers?.has(change.customer_id) ?? true) {
      if (some.size === atMost || some.has(key)) break
      some.set(key, change)
    }
    until = change.seq
  }
  return { some: [...some.values()], until }
}

/** The body holds no invoice data. A receiver retrieves the invoice and so gets its current state. */
function writeBody({ customer_id, invoice_id, kind, at }: StoredChange, cursor: string): string {
  return JSON.stringify({
    type: `invoice.${kind}`,
    timestamp: new Date(at).toISOString(),
    data: { customer_id, invoice_id, cursor, kind },
  })
}

function isSuccess({ status }: Answer): boolean {
  return status !== null && status >= 200 && status < 300
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
}
