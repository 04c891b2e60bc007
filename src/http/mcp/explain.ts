/** The operator's view of one invoice, read from tables that the API itself does not read. */
import { ApiError } from '../../domain/errors.ts'
import type { LinkRules } from '../../domain/link/link.ts'
import { type Explanation, explainInvoice } from '../../operations/explain.ts'
import { describeCharged } from '../../operations/reconcile/compare-amounts.ts'
import type { JournalEntry } from '../../store/document-store.ts'
import { openOperatorStore, useStore } from '../../store/engines.ts'
import { type OperatorStore, StoreError, StoreUnavailable } from '../../store/store.ts'
import { plain, showRecord } from './answer.ts'

export interface ExplainOptions {
  /** URL of the store, with a role that may read its tables. */
  operatorUrl: string
  rules: Omit<LinkRules, 'isConnected'>
}

/** Maximum of journal entries, of documents and of sentences that are shown. */
const maxEntries = 5

/**
 * Calls run one after the other, and each opens the store for itself. So a failure affects one call only, and
 * connections stay few.
 */
export function createExplain({ operatorUrl, rules }: ExplainOptions) {
  let last: Promise<unknown> = Promise.resolve()

  /** Returns one entry for each customer that has, or had, an invoice of this id. */
  async function explain(store: OperatorStore, invoiceId: string): Promise<object[]> {
    const { found, deleted, aside } = await explainInvoice(store, invoiceId, rules)
    const gone = deleted && { customer_id: deleted.customer_id, journal: showJournal(deleted.journal) }
    const set_aside = aside && plain(aside.reason)
    return [
      ...found.map(explanation => ({ deleted: false, set_aside, ...show(explanation) })),
      ...(gone === null ? [] : [{ deleted: true, set_aside, ...gone }]),
    ]
  }

  return (invoiceId: string): Promise<object[]> => {
    const call = last
      .then(() => useStore(openOperatorStore(operatorUrl), store => explain(store, invoiceId)))
      .catch(error => {
        if (!(error instanceof StoreError) || error instanceof StoreUnavailable) throw error
        const message = 'The database role of the API may not read this. "fatura explain" shows it.'
        throw new ApiError('unavailable', message, { cause: error })
      })
    last = call.catch(() => {})
    return call
  }
}

function show({ invoice, derived, documents, journal, next, references, isStale }: Explanation): object {
  return {
    ...showRecord(invoice, ['customer_id', 'display_name', 'status', 'total_cents', 'currency']),
    ...showRecord(invoice, ['ix_sync_state', 'ix_id', 'ix_status']),
    is_stale: isStale,
    why: plain(derived?.why ?? 'it was imported, with the state of its document'),
    references: references
      .flatMap(({ texts }) => texts)
      .slice(0, maxEntries)
      .map(plain),
    documents: documents.slice(0, maxEntries).map(({ id, document, misses }) => ({
      ...{ id, misses, ...(document && showRecord(document, ['type', 'status', 'number'])) },
      // The amount contains its currency, which may differ from the invoice's.
      ...(document && { charges: plain(describeCharged(document)) }),
    })),
    journal: showJournal(journal),
    next_looks: next.slice(0, maxEntries).map(plain),
  }
}

function showJournal(journal: readonly JournalEntry[]): object[] {
  return journal.slice(0, maxEntries).map(entry => {
    return { at: new Date(entry.at).toISOString(), ...showRecord(entry, ['type', 'outcome', 'detail']) }
  })
}
