/** The certified documents of the sandbox's invoices, invented until an invoicing system is connected: every state occurs. */
import { type Invoice, type InvoiceStatus, type SyncState, syncStates } from '../invoice.ts'

type DocumentFields = Pick<Invoice, 'ix_sync_state' | 'ix_id' | 'ix_status' | 'ix_created_at'>

const documentStatus: Record<InvoiceStatus, string> = {
  draft: 'draft',
  open: 'final',
  paid: 'settled',
  void: 'canceled',
  uncollectible: 'final',
}

/** Mostly synced, as it should be; `index` is the invoice's place among all, and decides. */
export function sampleDocument({ status, issued_at }: Invoice, index: number): DocumentFields {
  const state: SyncState = syncStates[index % 8] ?? 'synced'
  if (status === 'draft' || state !== 'synced')
    return {
      ix_sync_state: status === 'draft' && state === 'synced' ? 'not_synced' : state,
      ix_id: null,
      ix_status: null,
      ix_created_at: null,
    }
  return {
    ix_sync_state: 'synced',
    ix_id: 48_000 + index,
    ix_status: documentStatus[status],
    ix_created_at: new Date(Date.parse(issued_at) + 72_000).toISOString(),
  }
}
