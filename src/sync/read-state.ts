/** Reads the connector's state for operators, from the store alone. */
import { invoiceStatuses } from '../domain/invoice.ts'
import type { Loss, RefusalReason, RefusedKind, SetAside, SetAsideCount } from '../store/connector-store.ts'
import type { OperatorStore } from '../store/store.ts'
import { guardSystem } from './deletion-guard.ts'
import { everyMs } from './schedule.ts'
import { isDocumentKind, isRefusedKind, noId, type SetAsideKind } from './set-aside.ts'

const shown = 5

/** Set-aside records of one kind that wait to be fetched again. */
export interface WaitingRecords {
  system: string
  kind: string
  count: number
  due_at: number | null
  newest: SetAside
}

export type SyncState = Awaited<ReturnType<typeof readState>>

export async function readState(store: OperatorStore) {
  const counts = await store.countSetAside()
  const heldOf = (loss: Loss) =>
    counts.find(({ system, kind }) => system === guardSystem && kind === loss)?.count ?? 0
  const unfit = counts.filter(({ system, kind }) => system !== guardSystem && !isRefusedKind(kind))
  const newest: SetAside[] = []
  const waiting: WaitingRecords[] = []
  for (const { system, kind, count } of unfit) {
    const some = await store.listSetAside(shown, system, { kind, newestFirst: true })
    const [next] = await store.listSetAside(1, system, { kind })
    const [first] = some
    if (first !== undefined)
      waiting.push({ system, kind, count, due_at: next?.due_at ?? null, newest: first })
    newest.push(...some)
  }
  return {
    streams: await store.listStreams(),
    accounts: await store.listBoundAccounts(),
    lease: await store.readLease(),
    /** Records that could not be stored: their number, and the records tried last. */
    setAside: {
      count: unfit.reduce((sum, { count }) => sum + count, 0),
      newest: newest.sort((a, b) => b.last_at - a.last_at).slice(0, shown),
      /** The set-aside records by kind, with the time of the next retry. */
      waiting,
    },
    refused: await readRefused(store, counts),
    held: { deletion: heldOf('deletion'), lost_document: heldOf('lost_document') },
  }
}

const examplesShown = 3

/** Refused invoices with the same reason. `kind`: `refused` is not stored, and `outdated` is stored as it was before. */
export type Refused = Awaited<ReturnType<typeof readRefused>>[number]

async function readRefused(store: OperatorStore, counts: readonly SetAsideCount[]) {
  const refused = []
  for (const { system, kind, reason, count } of counts) {
    if (!isRefusedKind(kind) || reason === null) continue
    const newest = await store.listSetAside(examplesShown, system, { kind, reason, newestFirst: true })
    const examples = newest.map(({ id }) => id).filter(id => id !== noId)
    refused.push({ kind, reason, count, examples })
  }
  return refused
}

const words: Record<RefusalReason, string> = {
  no_customer: 'no customer',
  invalid_customer: 'the customer ID is not cus_ and letters and digits',
  unknown_status: `the status is not ${invoiceStatuses.slice(0, -1).join(', ')} or ${invoiceStatuses.at(-1)}`,
  preview: 'the ID is not in_ and letters and digits',
  missing: 'not found any more, though only a draft can be deleted',
  no_id: 'no ID',
}

/** Describes a reason in words. A reason that a newer version wrote is returned unchanged. */
export function formatReason(reason: string): string {
  return words[reason as RefusalReason] ?? reason
}

type WaitingKind = Exclude<SetAsideKind, RefusedKind>

/** In each text, " of" and the name of the system replace the `%`. */
const waitingWords: Record<WaitingKind, readonly [one: string, many: string]> = {
  invoice: ['invoice% could not be read', 'invoices% could not be read'],
  waiting: ['invoice% waits for a part of the database', 'invoices% wait for a part of the database'],
  overlapped: [
    'invoice% was answered in two ways at once, and is asked for again',
    'invoices% were answered in two ways at once, and are asked for again',
  ],
  document: ['document% could not be read', 'documents% could not be read'],
  client: ['client% could not be read', 'clients% could not be read'],
  relations: [
    'list% of related documents could not be read',
    'lists% of related documents could not be read',
  ],
  field: ['document% has a field that could not be read', 'documents% have a field that could not be read'],
}

/**
 * Describes waiting records, for example "3 invoices of ACME could not be read". A kind without words, which a newer version wrote, appears
 * under its stored name.
 */
export function formatWaiting(
  { kind, count }: Pick<WaitingRecords, 'kind' | 'count'>,
  system: string,
): string {
  const [one, many] = new Map(Object.entries(waitingWords)).get(kind) ?? [`${kind}%`, `${kind}%`]
  return `${count} ${(count === 1 ? one : many).replace('%', () => ` of ${system}`)}`
}

/** Interval in milliseconds of the checks for due records of a kind. */
export function lookEveryMs(kind: string): number {
  return isDocumentKind(kind) ? everyMs.open : everyMs.aside
}

/** Describes refused invoices, for example "7: no customer (in_1, in_2, in_3 and others)". */
export function formatRefused({ reason, count, examples }: Refused): string {
  const others = count > examples.length ? ' and others' : ''
  const named = examples.length === 0 ? '' : ` (${examples.join(', ')}${others})`
  return `${count}: ${formatReason(reason)}${named}`
}
