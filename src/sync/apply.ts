/** From observations to records: newer ones win, whatever order they come in. */
import type { Invoice, InvoiceRecord, InvoiceStatus } from '../invoice.ts'
import type { Observation } from '../sources.ts'
import type { KnownInvoice, WriteTransaction } from '../store/store.ts'

export interface Applied {
  /** New, or different from what was stored. */
  changed: number
  deleted: number
  /** Observed later already. */
  superseded: number
  /** None of ours, by the reason. */
  refused: Record<string, number>
}

/**
 * Applies what was observed to what is stored. `askedAt` is the moment before the platform was asked: what was observed
 * later stays, and equal moments may overwrite, for the state was fetched and not told. Where `isOpen` says that the
 * platform was asked before it had answered for what is stored, either may have seen more: then none leads back in a life.
 */
export async function applyObservations(
  tx: WriteTransaction,
  observations: readonly Observation[],
  askedAt: number,
  isOpen: (id: string) => boolean = () => false,
): Promise<Applied> {
  const applied: Applied = { changed: 0, deleted: 0, superseded: 0, refused: {} }
  const refuse = (reason: string) => {
    applied.refused[reason] = (applied.refused[reason] ?? 0) + 1
  }
  const owned = observations.flatMap(({ id, customer_id, map }) => {
    if (customer_id !== null) return [{ id, customer_id, map }]
    refuse('no_customer')
    return []
  })
  const known = new Map((await tx.findKnown(owned)).map(invoice => [keyOf(invoice), invoice]))
  const records: InvoiceRecord[] = []
  for (const observation of owned) {
    const before = known.get(keyOf(observation))
    const previous = readInvoice(before)
    const isTie = before?.observed_at === askedAt || isOpen(observation.id)
    if (before !== undefined && (before.observed_at > askedAt || (isTie && previous === null)))
      applied.superseded++
    else if (observation.map === null) {
      // Only a draft can be deleted. That anything else is not found says more of the key than of the invoice.
      if (previous !== null && previous.status !== 'draft') refuse('missing')
      else if (await tx.deleteInvoice(observation.customer_id, observation.id, askedAt)) applied.deleted++
    } else {
      const record = observation.map(previous)
      if ('refusal' in record) refuse(record.refusal)
      else if (isTie && isEarlier(record.invoice, previous)) applied.superseded++
      else records.push(record)
    }
  }
  applied.changed = await tx.saveInvoices(records, askedAt)
  return applied
}

/** How far a life is. What is gone is further than all. */
const stages: Record<InvoiceStatus, number> = { draft: 0, open: 1, uncollectible: 2, paid: 3, void: 3 }

function isEarlier({ status }: Invoice, than: Invoice | null): boolean {
  return than !== null && stages[status] < stages[than.status]
}

function keyOf({ customer_id, id }: { customer_id: string; id: string }): string {
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
