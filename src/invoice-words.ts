/** The states of an invoice in words that its customer understands: on the page and in its CSV. */
import type { Invoice, InvoiceStatus, SyncState } from './invoice.ts'

type Translated = readonly [pt: string, en: string]

const status: Record<InvoiceStatus, Translated> = {
  draft: ['Rascunho', 'Draft'],
  open: ['Por pagar', 'To pay'],
  paid: ['Paga', 'Paid'],
  void: ['Anulada', 'Cancelled'],
  uncollectible: ['Incobrável', 'Written off'],
}

/** By `ix_status`, as far as its values are known. */
const document: Record<string, Translated> = {
  draft: ['Rascunho', 'Draft'],
  sent: ['Emitido', 'Issued'],
  final: ['Emitido', 'Issued'],
  settled: ['Emitido e liquidado', 'Issued and settled'],
  canceled: ['Anulado', 'Cancelled'],
  second_copy: ['Segunda via', 'Second copy'],
  deleted: ['Eliminado', 'Deleted'],
}

const syncState: Record<SyncState, Translated> = {
  not_synced: ['Ainda por emitir', 'Not issued yet'],
  creating: ['Em emissão', 'Being issued'],
  synced: ['Emitido', 'Issued'],
  failed: ['Em atraso', 'Delayed'],
  ignored: ['Não necessário', 'None needed'],
}

function wordsIn(language: 0 | 1) {
  const choose = <Name extends string>(words: Record<Name, Translated>) => {
    const chosen = Object.entries<Translated>(words).map(([name, texts]) => [name, texts[language]])
    return Object.fromEntries(chosen) as Record<Name, string>
  }
  return { status: choose(status), document: choose(document), syncState: choose(syncState) }
}

export const invoiceWords = { pt: wordsIn(0), en: wordsIn(1) }

/** A status that nobody translated yet is returned as it is. */
export function describeDocument(
  { status, ix_sync_state, ix_status }: Pick<Invoice, 'status' | 'ix_sync_state' | 'ix_status'>,
  words: ReturnType<typeof wordsIn>,
): string {
  if (ix_status !== null) return words.document[ix_status] ?? ix_status
  // An invoice that was cancelled before it had a document gets none.
  return words.syncState[status === 'void' && ix_sync_state === 'not_synced' ? 'ignored' : ix_sync_state]
}
