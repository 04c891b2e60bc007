/** Words that describe the states of an invoice to its customer, on the billing page and in CSV files. */
import type { Invoice, InvoiceStatus, SyncState } from './invoice.ts'

export type Translated = readonly [pt: string, en: string]

const status: Record<InvoiceStatus, Translated> = {
  draft: ['Rascunho', 'Draft'],
  open: ['Por pagar', 'To pay'],
  paid: ['Paga', 'Paid'],
  void: ['Anulada', 'Cancelled'],
  uncollectible: ['Incobrável', 'Written off'],
}

/** Words for the known values of `ix_status`. */
const document: Record<string, Translated> = {
  draft: ['Rascunho', 'Draft'],
  sent: ['Emitido', 'Issued'],
  final: ['Emitido', 'Issued'],
  settled: ['Emitido e liquidado', 'Issued and settled'],
  canceled: ['Anulado', 'Cancelled'],
  second_copy: ['Segunda via', 'Second copy'],
  deleted: ['Eliminado', 'Deleted'],
}

/** Words for the known types of certified documents. */
export const documentTypeWords: Readonly<Record<string, Translated>> = {
  Invoice: ['Fatura', 'Invoice'],
  InvoiceReceipt: ['Fatura-recibo', 'Invoice-receipt'],
  SimplifiedInvoice: ['Fatura simplificada', 'Simplified invoice'],
  VatMossInvoice: ['Fatura MOSS', 'MOSS invoice'],
  CashInvoice: ['Venda a dinheiro', 'Cash sale'],
}

const syncState: Record<SyncState, Translated> = {
  not_synced: ['Ainda por emitir', 'Not issued yet'],
  creating: ['Em emissão', 'Being issued'],
  synced: ['Emitido', 'Issued'],
  // After a failed creation, the creator of documents tries again. The customer only has to wait, so `failed` has the words of `creating`.
  failed: ['Em emissão', 'Being issued'],
  ignored: ['Não necessário', 'None needed'],
}

export const few = (count: number, one: string, many: string) => (count === 1 ? one : many)

export type Texts = Record<string, Translated | ((...values: never[]) => Translated)>
type Chosen<Text> = Text extends (...values: infer Values) => unknown ? (...values: Values) => string : string

/** Returns the texts of one language. A text that contains values becomes a function of these values. */
export function chooseWords<Both extends Texts>(texts: Both, language: 'pt' | 'en') {
  const index = language === 'pt' ? 0 : 1
  const chosen = Object.entries(texts).map(([name, text]) => [
    name,
    typeof text === 'function' ? (...values: never[]) => text(...values)[index] : text[index],
  ])
  return Object.fromEntries(chosen) as { [Name in keyof Both]: Chosen<Both[Name]> }
}

const wordsIn = (language: 'pt' | 'en') => ({
  status: chooseWords(status, language),
  document: chooseWords(document, language),
  syncState: chooseWords(syncState, language),
})

export const invoiceWords = { pt: wordsIn('pt'), en: wordsIn('en') }

/** Describes the certified document of an invoice. A status without a translation is returned unchanged. */
export function describeDocument(
  { status, ix_sync_state, ix_status }: Pick<Invoice, 'status' | 'ix_sync_state' | 'ix_status'>,
  words: ReturnType<typeof wordsIn>,
): string {
  if (ix_status !== null) return words.document[ix_status] ?? ix_status
  // An invoice that was voided before it had a document never gets one.
  return words.syncState[status === 'void' && ix_sync_state === 'not_synced' ? 'ignored' : ix_sync_state]
}
