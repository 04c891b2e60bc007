/** Texts of the page, in Portuguese and English. */
import { chooseWords, few, invoiceWords, type Texts, type Translated } from '../domain/invoice-words.ts'
import type { EntryType } from '../sdk/client.ts'
import { accessTexts } from './access-words.ts'
import { booksTexts } from './books-words.ts'
import { invoiceTexts } from './one-invoice-words.ts'

const texts = {
  title: ['As suas faturas', 'Your invoices'],
  history: ['Histórico de faturação', 'Billing history'],
  language: ['Idioma', 'Language'],
  support: ['Dúvidas sobre uma fatura?', 'Questions about an invoice?'],
  skip: ['Saltar para as faturas', 'Skip to the invoices'],

  noNumber: ['Ainda sem número', 'Without a number yet'],

  filters: ['Filtros', 'Filters'],
  filtersSet: (count: number) => [`Filtros (${count})`, `Filters (${count})`],
  period: ['Período', 'Period'],
  filterDocument: ['Documento', 'Document'],
  from: ['De', 'From'],
  to: ['Até', 'To'],
  search: ['Pesquisar', 'Search'],
  searchHint: ['Número, nome, NIF…', 'Number, name, tax ID…'],
  any: ['Todos', 'All'],
  clear: ['Limpar filtros', 'Clear filters'],
  wrongRange: [
    'O primeiro dia é posterior ao último. Troque um dos dois.',
    'The first day is after the last. Change one of the two.',
  ],

  found: (total: string, count: number) => [
    `${total} ${few(count, 'fatura', 'faturas')}`,
    `${total} ${few(count, 'invoice', 'invoices')}`,
  ],
  part: (first: string, last: string, found: string) => [
    `${first}–${last} de ${found}`,
    `${first}–${last} of ${found}`,
  ],
  page: (page: string, pages: string) => [`Página ${page} de ${pages}`, `Page ${page} of ${pages}`],
  pages: ['Páginas', 'Pages'],
  previous: ['Anterior', 'Previous'],
  next: ['Seguinte', 'Next'],
  pageSize: ['Por página', 'Per page'],

  updated: (ago: string) => [`Atualizado ${ago}`, `Updated ${ago}`],
  neverUpdated: ['Ainda não sincronizado', 'Not synchronized yet'],
  live: ['A lista foi atualizada', 'The list was updated'],

  owed: ['Por pagar', 'To pay'],
  owedIn: (count: string) => [`Por pagar em ${count} faturas`, `To pay in ${count} invoices`],
  until: (day: string) => [`até ${day}`, `by ${day}`],
  toPayUntil: (day: string) => [`Por pagar até ${day}`, `To pay by ${day}`],
  overdueBy: (days: number) => [
    `Vencida há ${days} ${few(days, 'dia', 'dias')}`,
    `${days} ${few(days, 'day', 'days')} overdue`,
  ],
  remains: (amount: string) => [`Falta pagar ${amount}`, `${amount} to pay`],
  allOpen: (count: string) => [`Ver as ${count} por pagar`, `Show all ${count}`],
  fewer: ['Ver menos', 'Show fewer'],
  moreOpen: (count: number) => [`E mais ${count}, na lista abaixo.`, `And ${count} more, in the list below.`],
  credit: (amount: string) => [`Crédito a seu favor: ${amount}`, `Credit in your favour: ${amount}`],
  nothingOwed: ['Nada por pagar.', 'Nothing to pay.'],
  pay: ['Pagar', 'Pay'],
  payOf: (number: string) => [
    `Pagar a fatura ${number}, num novo separador`,
    `Pay invoice ${number}, in a new tab`,
  ],
  payOpen: ['Abrir a página de pagamento', 'Open the payment page'],
  payFailed: [
    'De momento, não é possível abrir a página de pagamento. Tente de novo daqui a pouco.',
    'The payment page cannot be opened right now. Try again in a while.',
  ],
  notPayable: ['Já não há nada por pagar.', 'There is nothing to pay any more.'],

  chart: ['Faturado por mês', 'Billed by month'],
  chartOf: (currency: string) => [`Faturado por mês, ${currency}`, `Billed by month, ${currency}`],
  chartNote: ['Sem rascunhos nem faturas anuladas.', 'Without drafts and cancelled invoices.'],
  chartMonth: ['Mês', 'Month'],
  earlier: ['Meses anteriores', 'Earlier months'],
  later: ['Meses seguintes', 'Later months'],

  back: ['Todas as faturas', 'All invoices'],
  taxId: ['NIF', 'Tax ID'],
  currency: ['Moeda', 'Currency'],
  billed: ['Faturado', 'Billed'],
  paid: ['Pago', 'Paid'],
  print: ['Imprimir ou guardar em PDF', 'Print or save as PDF'],

  signIn: ['Ver faturas', 'Show invoices'],
  customer: ['Cliente', 'Customer'],
  leave: ['Sair', 'Leave'],

  loading: ['A carregar as faturas…', 'Loading invoices…'],
  slow: ['Está a demorar mais do que o habitual.', 'This takes longer than usual.'],
  again: ['Tentar de novo', 'Try again'],
  none: ['Ainda não há faturas', 'No invoices yet'],
  noneLead: [
    'Assim que houver uma, aparece aqui automaticamente.',
    'As soon as there is one, it appears here by itself.',
  ],
  noMatch: ['Nenhuma fatura corresponde', 'No invoice matches'],
  noMatchLead: [
    'Com outros filtros talvez encontre o que procura.',
    'Other filters may find what you look for.',
  ],
  expired: ['O seu acesso expirou', 'Your access has expired'],
  expiredLead: [
    'As ligações são válidas por tempo limitado. Peça uma nova a quem lhe deu esta.',
    'Links are good for a limited time. Ask for a new one where you got this one.',
  ],
  revoked: ['O seu acesso terminou', 'Your access has ended'],
  revokedLead: [
    'Foi retirado ou não é conhecido aqui. Peça uma nova ligação a quem lhe deu esta.',
    'It was withdrawn, or is not known here. Ask for a new link where you got this one.',
  ],
  brokenLink: ['Esta ligação está incompleta ou expirou', 'This link is broken or has expired'],
  brokenLinkLead: [
    'Peça uma nova onde recebeu esta: na aplicação ou na mensagem em que estava.',
    'Ask for a new one where you got this one: in the app or the message that it stood in.',
  ],
  replaced: ['Uma ligação substituiu o que estava aberto.', 'A link took the place of what was open before.'],
  former: ['Voltar ao que estava aberto', 'Back to what was open'],
  forbidden: ['Este acesso é de outra pessoa', 'This access is for somebody else'],
  forbiddenLead: [
    'Não abre as faturas deste cliente. Peça a ligação certa a quem lhe deu esta.',
    'It does not open the invoices of this customer. Ask for the right link where you got this one.',
  ],
  limited: ['Demasiados pedidos em pouco tempo', 'Too many requests at once'],
  limitedLead: ['', ''],
  retryIn: (seconds: string) => [
    `Nova tentativa automática dentro de ${seconds} s.`,
    `Trying again by itself in ${seconds} s.`,
  ],
  offline: ['Sem ligação', 'No connection'],
  offlineLead: [
    'O que vê foi carregado antes. Continua automaticamente assim que houver ligação.',
    'What you see was loaded before. It goes on by itself as soon as there is a connection.',
  ],
  offlineFirstLead: [
    'As faturas aparecem automaticamente assim que houver ligação.',
    'The invoices appear by themselves as soon as there is a connection.',
  ],
  broken: ['O serviço não responde como devia', 'The service does not answer as it should'],
  brokenLead: [
    'A culpa não é sua. Tente de novo daqui a pouco.',
    'That is not your fault. Try again in a while.',
  ],
  reference: (id: string) => [`Referência para o apoio ao cliente: ${id}`, `Reference for support: ${id}`],
  gone: ['Esta fatura não existe', 'There is no such invoice'],
  goneLead: [
    'Pode ter sido um rascunho, entretanto eliminado.',
    'It may have been a draft that was deleted.',
  ],
  unsearchable: ['Esta pesquisa é demasiado longa', 'This search is too long'],
  unsearchableLead: ['Use menos palavras.', 'Use fewer words.'],
  documentMissing: ['Este documento não existe.', 'There is no such document.'],

  pick: ['Escolher', 'Choose'],
  pickOf: (number: string) => [`Escolher a fatura ${number}`, `Choose invoice ${number}`],
  pickLead: ['Escolha uma fatura.', 'Choose an invoice.'],
  picked: (number: string) => [`Foi escolhida a fatura ${number}.`, `Invoice ${number} was chosen.`],
} satisfies Texts

const columns = {
  number: ['Fatura', 'Invoice'],
  issued: ['Data', 'Date'],
  state: ['Estado', 'State'],
  document: ['Documento certificado', 'Certified document'],
  total: ['Total', 'Total'],
  actions: ['Ações', 'Actions'],
} satisfies Texts

const states = {
  draft: ['Rascunho', 'Draft'],
  toPay: ['Por pagar', 'To pay'],
  paid: ['Paga', 'Paid'],
  void: ['Anulada', 'Cancelled'],
  credited: ['Creditada', 'Credited'],
  nothingToPay: ['Nada por pagar', 'Nothing to pay'],
  uncollectible: ['Incobrável', 'Written off'],
} satisfies Texts

const entries: Record<EntryType, Translated> = {
  invoice: ['Fatura', 'Invoice'],
  balance: ['Saldo da conta', 'Account balance'],
  credit_note: ['Nota de crédito', 'Credit note'],
  debit_note: ['Nota de débito', 'Debit note'],
  payment: ['Pagamento', 'Payment'],
  receipt: ['Recibo', 'Receipt'],
  write_off: ['Incobrável', 'Written off'],
  void: ['Anulação', 'Cancellation'],
  refund: ['Reembolso', 'Refund'],
  other: ['Outro acerto', 'Other adjustment'],
}

const periods = {
  thisMonth: ['Este mês', 'This month'],
  lastMonth: ['Mês anterior', 'Last month'],
  thisQuarter: ['Este trimestre', 'This quarter'],
  lastQuarter: ['Trimestre anterior', 'Last quarter'],
} satisfies Texts

const documentTypes: Record<string, Translated> = {
  Invoice: ['Fatura', 'Invoice'],
  InvoiceReceipt: ['Fatura-recibo', 'Invoice-receipt'],
  SimplifiedInvoice: ['Fatura simplificada', 'Simplified invoice'],
  VatMossInvoice: ['Fatura MOSS', 'VAT MOSS invoice'],
  CashInvoice: ['Venda a dinheiro', 'Cash invoice'],
  CreditNote: ['Nota de crédito', 'Credit note'],
  DebitNote: ['Nota de débito', 'Debit note'],
  Receipt: ['Recibo', 'Receipt'],
  VatMossCreditNote: ['Nota de crédito MOSS', 'VAT MOSS credit note'],
  VatMossReceipt: ['Recibo MOSS', 'VAT MOSS receipt'],
}

const wordsIn = (language: Language) => ({
  ...invoiceWords[language],
  ...chooseWords(texts, language),
  ...chooseWords(accessTexts, language),
  ...chooseWords(booksTexts, language),
  ...chooseWords(invoiceTexts, language),
  column: chooseWords(columns, language),
  state: chooseWords(states, language),
  periodName: chooseWords(periods, language),
  entryName: chooseWords(entries, language),
  documentType: chooseWords(documentTypes, language),
})

export type Words = ReturnType<typeof wordsIn>
export type Language = 'pt' | 'en'

export const languages: Record<Language, { name: string; words: Words }> = {
  pt: { name: 'Português', words: wordsIn('pt') },
  en: { name: 'English', words: wordsIn('en') },
}

/** Returns the first wanted language that the page has. The default is English. */
export function pickLanguage(...wishes: readonly (string | null | undefined)[]): Language {
  const asked = wishes.map(wish => wish?.toLowerCase().split('-')[0])
  return asked.find(language => language === 'pt' || language === 'en') ?? 'en'
}
