/** The states of an invoice in words that its customer understands: on the page and in its CSV. */
import type { Invoice, InvoiceStatus, SyncState } from './invoice.ts'

export interface InvoiceWords {
  status: Record<InvoiceStatus, string>
  /** By `ix_status`, as far as its values are known. */
  document: Record<string, string>
  syncState: Record<SyncState, string>
}

export const invoiceWords: Record<'pt' | 'en', InvoiceWords> = {
  pt: {
    status: {
      draft: 'Rascunho',
      open: 'Por pagar',
      paid: 'Paga',
      void: 'Anulada',
      uncollectible: 'Incobrável',
    },
    document: {
      draft: 'Rascunho',
      sent: 'Emitido',
      final: 'Emitido',
      settled: 'Emitido e liquidado',
      canceled: 'Anulado',
      second_copy: 'Segunda via',
      deleted: 'Eliminado',
    },
    syncState: {
      not_synced: 'Ainda por emitir',
      creating: 'Em emissão',
      synced: 'Emitido',
      failed: 'Em atraso',
      ignored: 'Não necessário',
    },
  },
  en: {
    status: {
      draft: 'Draft',
      open: 'To pay',
      paid: 'Paid',
      void: 'Cancelled',
      uncollectible: 'Written off',
    },
    document: {
      draft: 'Draft',
      sent: 'Issued',
      final: 'Issued',
      settled: 'Issued and settled',
      canceled: 'Cancelled',
      second_copy: 'Second copy',
      deleted: 'Deleted',
    },
    syncState: {
      not_synced: 'Not issued yet',
      creating: 'Being issued',
      synced: 'Issued',
      failed: 'Delayed',
      ignored: 'None needed',
    },
  },
}

/** A status that nobody translated yet is returned as it is. */
export function describeDocument(
  { status, ix_sync_state, ix_status }: Pick<Invoice, 'status' | 'ix_sync_state' | 'ix_status'>,
  words: InvoiceWords,
): string {
  if (ix_status !== null) return words.document[ix_status] ?? ix_status
  // An invoice that was cancelled before it had a document gets none.
  return words.syncState[status === 'void' && ix_sync_state === 'not_synced' ? 'ignored' : ix_sync_state]
}
