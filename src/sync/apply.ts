/** From observations to records: newer ones win, whatever order they come in. */
import {
  type Invoice,
  type InvoiceKey,
  type InvoiceRecord,
  type InvoiceStatus,
  invoiceFields,
} from '../invoice.ts'
import type { Observation } from '../sources.ts'
import type { JournalEntry, JournalOutcome } from '../store/document-store.ts'
import type { KnownInvoice, WriteTransaction } from '../store/store.ts'
import { type LinkRules, usualRules } from './link.ts'
import { linkInvoices } from './link-invoices.ts'

export interface Applied {
  /** New, or different from what was stored. */
  changed: number
  deleted: number
  /** Observed later already. */
  superseded: number
  /** None of ours, by the reason. */
  refused: Record<string, number>
}

/** Why the platform was asked: what the journal keeps. */
export interface Cause {
  id: string
  type: string
  /** In milliseconds, by the platform's clock. */
  happened_at: number
}

export interface ApplyOptions {
  /**
   * Whether the platform was asked before it had answered for what is stored: then either may have seen more, and none
   * leads back in a life.
   */
  isOpen?(id: string): boolean
  rules?: LinkRules
  /** Null: nothing told of it, it was looked at on our own account. */
  cause?: Cause | null
}

/**
 * Applies what was observed to what is stored. `askedAt` is the moment before the platform was asked: what was observed
 * later stays, and equal moments may overwrite, for the state was fetched and not told.
 */
export async function applyObservations(
  tx: WriteTransaction,
  observations: readonly Observation[],
  askedAt: number,
  { isOpen = () => false, rules = usualRules, cause = null }: ApplyOptions = {},
): Promise<Applied> {
  const applied: Applied = { changed: 0, deleted: 0, superseded: 0, refused: {} }
  const entries: JournalEntry[] = []
  const now = Date.now()
  const note = ({ customer_id, id }: InvoiceKey, outcome: JournalOutcome, detail: string) => {
    if (cause === null) return
    const { id: name, type, happened_at } = cause
    entries.push({ customer_id, id, cause: name, type, happened_at, at: now, outcome, detail })
  }
  const refuse = (reason: string) => {
    applied.refused[reason] = (applied.refused[reason] ?? 0) + 1
  }
  const stored = await findGone(tx, observations)
  const owned = observations.flatMap(({ id, customer_id, map }) => {
    if (customer_id !== null) return [{ id, customer_id, map }]
    const keys = stored.filter(key => key.id === id)
    if (keys.length === 0) refuse('no_customer')
    return keys.map(key => ({ ...key, map }))
  })
  const known = new Map((await tx.findKnown(owned)).map(invoice => [keyOf(invoice), invoice]))
  const records: InvoiceRecord[] = []
  const supersede = (key: InvoiceKey, why: string) => {
    applied.superseded++
    note(key, 'superseded', why)
  }
  for (const observation of owned) {
    const before = known.get(keyOf(observation))
    const previous = readInvoice(before)
    const isTie = before?.observed_at === askedAt || isOpen(observation.id)
    if (before !== undefined && before.observed_at > askedAt)
      supersede(observation, 'a later answer was applied already')
    else if (isTie && before !== undefined && previous === null)
      supersede(observation, 'it was deleted since')
    else if (observation.map === null) {
      // Only a draft can be deleted. That anything else is not found says more of the key than of the invoice.
      if (previous !== null && previous.status !== 'draft') {
        refuse('missing')
        note(
          observation,
          'ignored',
          `not found, though it is ${previous.status}: only a draft can be deleted`,
        )
      } else if (await tx.deleteInvoice(observation.customer_id, observation.id, askedAt)) {
        applied.deleted++
        note(observation, 'applied', 'deleted')
      }
    } else {
      const record = observation.map(previous)
      if ('refusal' in record) {
        refuse(record.refusal)
        note(observation, 'ignored', `none of ours: ${record.refusal}`)
      } else if (isTie && isEarlier(record.invoice, previous))
        supersede(observation, `asked at the same time as an answer that was further: ${previous?.status}`)
      else records.push(record)
    }
  }
  const linked = await linkRecords(tx, records, rules, now)
  applied.changed = await tx.saveInvoices(linked, askedAt)
  if (cause !== null)
    for (const { invoice } of linked) {
      const change = describeChange(readInvoice(known.get(keyOf(invoice))), invoice)
      // Of a customer's many invoices, only those that changed are told of.
      if (change !== null) note(invoice, 'applied', change)
      else if (observations.length === 1) note(invoice, 'unchanged', 'nothing differed from what was stored')
    }
  await tx.saveEntries(entries)
  return applied
}

/** Of an invoice that is gone nobody tells whose it was, unless it is stored. */
async function findGone(tx: WriteTransaction, observations: readonly Observation[]): Promise<InvoiceKey[]> {
  const invoices = observations
    .filter(({ customer_id, map }) => customer_id === null && map === null)
    .map(({ id }) => id)
  return invoices.length === 0 ? [] : tx.findLinked({ documents: [], invoices })
}

/** What is recorded of documents may have changed with the invoices. Those without any claim are left as they are. */
async function linkRecords(
  tx: WriteTransaction,
  records: readonly InvoiceRecord[],
  rules: LinkRules,
  now: number,
): Promise<InvoiceRecord[]> {
  const claimed = records.flatMap(({ invoice, claim }) => (claim === undefined ? [] : [{ invoice, claim }]))
  if (claimed.length === 0) return [...records]
  const linked = await linkInvoices(tx, claimed, rules, now)
  const byKey = new Map(linked.map(({ invoice }) => [keyOf(invoice), invoice]))
  return records.map(record => ({ ...record, invoice: byKey.get(keyOf(record.invoice)) ?? record.invoice }))
}

/** Null when nothing differs but the lines, which are not compared here. */
function describeChange(before: Invoice | null, after: Invoice): string | null {
  if (before === null) return `new, ${after.status}`
  const names = invoiceFields.filter(name => before[name] !== after[name])
  if (names.length === 0) return null
  const others = names.filter(name => name !== 'status').join(', ')
  const status = before.status === after.status ? '' : `${before.status} → ${after.status}`
  return [status, others && `changed: ${others}`].filter(Boolean).join('; ')
}

/** How far a life is. What is gone is further than all. */
const stages: Record<InvoiceStatus, number> = { draft: 0, open: 1, uncollectible: 2, paid: 3, void: 3 }

function isEarlier({ status }: Invoice, than: Invoice | null): boolean {
  return than !== null && stages[status] < stages[than.status]
}

function keyOf({ customer_id, id }: InvoiceKey): string {
  return `${customer_id} ${id}`
}

function readInvoice(known: KnownInvoice | undefined): Invoice | null {
  return known?.summary ? JSON.parse(known.summary) : null
}

export function addApplied(a: Applied, b: Applied): Applied {
  const refused = { ...a.refused }
  for (const [reason, count] of Object.entries(b.refused)) refused[reason] = (refused[reason] ?? 0) + count
  return {
    changed: a.changed + b.changed,
    deleted: a.deleted + b.deleted,
    superseded: a.superseded + b.superseded,
    refused,
  }
}

export const nothingApplied: Applied = { changed: 0, deleted: 0, superseded: 0, refused: {} }
