/** Side results of decisions: counts, set-aside records, journal entries and differences. Pure. */
import type { InvoiceKey } from '../../domain/invoice.ts'
import { overlappedKind, type RefusalReason } from '../../store/connector-store.ts'
import type { JournalEntry, JournalOutcome } from '../../store/document-store.ts'
import type { Wanted } from '../set-aside.ts'
import { type Decision, describeChange, isDifferent, type StampedAnswer } from './decide.ts'

/** The event that led to a fetch, for the journal. */
export interface Cause extends Pick<JournalEntry, 'cause' | 'type' | 'happened_at'> {
  /** Journal entries of other events that led to the same fetch. */
  others: readonly JournalEntry[]
}

export interface Decided {
  answer: StampedAnswer
  decision: Decision | { action: 'hold back'; key: InvoiceKey }
}

export function countRefused(decided: readonly Decided[]): Record<string, number> {
  const refused: Record<string, number> = {}
  for (const { decision } of decided) {
    const reason =
      decision.action === 'refuse' ? decision.reason : decision.action === 'hold back' ? 'held_back' : null
    if (reason !== null) refused[reason] = (refused[reason] ?? 0) + 1
  }
  return refused
}

export function wantedOf(decision: Decided['decision']): Wanted | null {
  if (decision.action === 'overlap')
    return { kind: overlappedKind, reason: 'two answers that overlap differ: it is asked for again' }
  if (decision.action !== 'refuse') return null
  return { kind: decision.isStored ? 'outdated' : 'refused', reason: decision.reason satisfies RefusalReason }
}

export function findDifferent(decision: Decided['decision']): InvoiceKey[] {
  if (decision.action === 'delete') return decision.before?.previous ? [decision.key] : []
  if (decision.action !== 'save') return []
  const { record, before } = decision
  return isDifferent(before, record) ? [record.invoice] : []
}

/** Returns the journal entries of an event. When a customer's event leads to many invoices, only changed invoices get an entry. */
export function writeJournal(
  decided: readonly Decided[],
  { cause, now }: { cause: Cause | null; now: number },
): JournalEntry[] {
  if (cause === null) return []
  const { others, ...event } = cause
  const entryOf = ({ customer_id, id }: InvoiceKey, outcome: JournalOutcome, detail: string) => {
    return { customer_id, id, ...event, at: now, outcome, detail }
  }
  const own = decided.flatMap(({ decision }) => {
    const outcome = describeDecision(decision, decided.length === 1)
    return outcome === null ? [] : [entryOf(outcome.key, outcome.outcome, outcome.detail)]
  })
  return [...others, ...own]
}

function describeDecision(
  decision: Decided['decision'],
  isAlone: boolean,
): { key: InvoiceKey; outcome: JournalOutcome; detail: string } | null {
  switch (decision.action) {
    case 'nothing':
      return null
    case 'overlap': {
      const detail = 'another answer overlaps with this one, and differs: it is asked for again'
      return { key: decision.key, outcome: 'overlapped', detail }
    }
    case 'refuse':
      return decision.key && { key: decision.key, outcome: 'ignored', detail: decision.why }
    case 'hold back': {
      const detail = 'deleted, but the deletion guard holds it back because many were deleted at once'
      return { key: decision.key, outcome: 'ignored', detail }
    }
    case 'delete':
      return decision.before?.previous ? { key: decision.key, outcome: 'applied', detail: 'deleted' } : null
    case 'save': {
      const { record, before, formerly } = decision
      const key = record.invoice
      const [former] = formerly
      if (former !== undefined)
        return { key, outcome: 'applied', detail: `it belonged to ${former.customer_id} before` }
      const change = describeChange(before, record)
      if (change !== null) return { key, outcome: 'applied', detail: change }
      return isAlone ? { key, outcome: 'unchanged', detail: 'nothing differed from what was stored' } : null
    }
  }
}
