/** Texts about exports and the statement of account, in Portuguese and English. */
import { few, type Texts } from '../domain/invoice-words.ts'

export const booksTexts = {
  export: ['Exportar', 'Export'],
  csv: ['CSV', 'CSV'],
  csvHint: [
    'Uma tabela para folhas de cálculo, com todas as faturas da lista',
    'A table for spreadsheets, of all the invoices in the list',
  ],
  zip: ['Todos os PDF', 'All PDFs'],
  zipHint: [
    'Um ficheiro ZIP com os PDF de todas as faturas da lista',
    'One ZIP file with the PDFs of all the invoices in the list',
  ],
  statement: ['Conta corrente', 'Statement'],
  progress: (done: string, total: string) => [`${done} de ${total}`, `${done} of ${total}`],
  cancel: ['Cancelar', 'Cancel'],
  done: ['Concluído.', 'Done.'],
  noPdfs: ['Nenhum PDF foi obtido.', 'No PDF could be fetched.'],
  cancelled: ['Cancelado.', 'Cancelled.'],
  walkChanged: [
    'Entretanto houve alterações. Exporte de novo, para ter a certeza de que nada falta.',
    'Something changed meanwhile. Export again to be sure that nothing is missing.',
  ],
  zipMissing: (count: number) => [
    `Não foi possível obter ${count} PDF. O ficheiro missing.txt, dentro do ZIP, diz ${few(count, 'qual', 'quais')} e porquê.`,
    `${count} ${few(count, 'PDF', 'PDFs')} could not be fetched. The file missing.txt in the ZIP tells which, and why.`,
  ],
  folderIx: ['Faturas', 'Invoices'],
  folderPayments: ['Pagamentos', 'Payments'],
  pdfNotReady: ['O PDF ainda está a ser criado.', 'The PDF is still being made.'],
  missingTitle: ['Não foi possível obter estes PDF:', 'These PDFs could not be fetched:'],

  statementTitle: ['Conta corrente', 'Statement of account'],
  ledgerOf: (currency: string) => [`Conta corrente em ${currency}`, `Account in ${currency}`],
  entry: ['Movimento', 'Entry'],
  debit: ['Débito', 'Debit'],
  creditColumn: ['Crédito', 'Credit'],
  balance: ['Saldo', 'Balance'],
  opening: ['Saldo inicial', 'Opening balance'],
  closing: ['Saldo final', 'Closing balance'],
  bySum: ['Sem documento próprio', 'Without a document of its own'],
  noEntries: ['Não há movimentos neste período.', 'There are no entries in this period.'],
  statementOf: (day: string) => [`À data de ${day}`, `As of ${day}`],
  statementRange: (from: string | null, to: string | null) => [
    from && to ? `De ${from} a ${to}` : from ? `A partir de ${from}` : to ? `Até ${to}` : 'Todas as datas',
    from && to ? `${from} to ${to}` : from ? `From ${from}` : to ? `Up to ${to}` : 'All dates',
  ],
  statementFilters: (filters: string) => [`Apenas: ${filters}`, `Only: ${filters}`],
} satisfies Texts
