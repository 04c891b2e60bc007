/** The page's texts, each in Portuguese and in English. */
import { chooseWords, invoiceWords, type Texts, type Translated } from '../invoice-words.ts'

const few = (count: number, one: string, many: string) => (count === 1 ? one : many)

const texts = {
  title: ['As suas faturas', 'Your invoices'],
  history: ['Histórico de faturação', 'Billing history'],
  language: ['Idioma', 'Language'],
  support: ['Dúvidas sobre uma fatura?', 'Questions about an invoice?'],
  skip: ['Saltar para as faturas', 'Skip to the invoices'],

  noNumber: ['Ainda sem número', 'Without a number yet'],

  filters: ['Filtros', 'Filters'],
  filterDocument: ['Documento', 'Document'],
  from: ['De', 'From'],
  to: ['Até', 'To'],
  search: ['Pesquisar', 'Search'],
  searchHint: ['Número, nome, NIF…', 'Number, name, tax ID…'],
  any: ['Todos', 'All'],
  clear: ['Limpar filtros', 'Clear filters'],
  wrongRange: [
    'O primeiro dia é posterior ao último: nada pode corresponder.',
    'The first day is after the last: nothing can match.',
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

  owed: (amount: string, total: string, count: number) => [
    `Por pagar: ${amount} em ${total} ${few(count, 'fatura', 'faturas')}`,
    `To pay: ${amount} in ${total} ${few(count, 'invoice', 'invoices')}`,
  ],
  credit: (amount: string) => [`Crédito a favor: ${amount}`, `Credit: ${amount}`],
  nothingOwed: ['Nada por pagar', 'Nothing to pay'],
  pay: ['Pagar', 'Pay'],
  payOf: (number: string) => [
    `Pagar a fatura ${number}, num novo separador`,
    `Pay invoice ${number}, in a new tab`,
  ],
  payOpen: ['Abrir a página de pagamento', 'Open the payment page'],
  payFailed: [
    'De momento, não é possível abrir a página de pagamento.',
    'The payment page cannot be opened right now.',
  ],
  notPayable: ['Já não há nada por pagar.', 'There is nothing to pay any more.'],

  chart: ['Faturado por mês', 'Billed by month'],
  chartOf: (currency: string) => [`Faturado por mês, ${currency}`, `Billed by month, ${currency}`],
  chartNote: ['Sem rascunhos nem faturas anuladas.', 'Without drafts and cancelled invoices.'],
  chartMonth: ['Mês', 'Month'],
  earlier: ['Meses anteriores', 'Earlier months'],
  later: ['Meses seguintes', 'Later months'],

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
  statement: ['Extrato', 'Statement'],
  progress: (done: string, total: string) => [`${done} de ${total}`, `${done} of ${total}`],
  cancel: ['Cancelar', 'Cancel'],
  done: ['Concluído.', 'Done.'],
  noPdfs: ['Nenhum PDF foi obtido.', 'No PDF could be fetched.'],
  cancelled: ['Cancelado.', 'Cancelled.'],
  walkChanged: [
    'Entretanto houve alterações: repita, para ter a certeza de que nada falta.',
    'Something changed meanwhile: export again to be sure that nothing is missing.',
  ],
  zipMissing: (count: number) => [
    `Não foi possível obter ${count} PDF; o ficheiro missing.txt, dentro do ZIP, indica ${few(count, 'qual', 'quais')}.`,
    `${count} ${few(count, 'PDF', 'PDFs')} could not be fetched; missing.txt in the ZIP lists them.`,
  ],
  missingTitle: ['Não foi possível obter estes PDF:', 'These PDFs could not be fetched:'],

  back: ['Todas as faturas', 'All invoices'],
  lines: ['Linhas', 'Lines'],
  noLines: [
    'De momento, as linhas não estão disponíveis. Os totais e os documentos estão.',
    'The lines are not available right now. Totals and documents are.',
  ],
  emptyLines: ['Esta fatura não tem linhas.', 'This invoice has no lines.'],
  description: ['Descrição', 'Description'],
  quantity: ['Quantidade', 'Quantity'],
  unitPrice: ['Preço unitário', 'Unit price'],
  discount: ['Desconto', 'Discount'],
  amount: ['Valor', 'Amount'],
  subtotal: ['Subtotal', 'Subtotal'],
  tax: (percent: string | null) => [
    percent === null ? 'IVA' : `IVA (${percent})`,
    percent === null ? 'Tax' : `Tax (${percent})`,
  ],
  taxIncluded: (percent: string | null) => [
    percent === null ? 'Inclui IVA' : `Inclui IVA (${percent})`,
    percent === null ? 'Includes tax' : `Includes tax (${percent})`,
  ],
  otherCharges: ['Portes e outros encargos', 'Shipping and other charges'],
  otherCredits: ['IVA já incluído e créditos', 'Tax already included, credits'],
  documents: ['Documentos', 'Documents'],
  qr: ['Código QR do documento certificado', 'QR code of the certified document'],
  pdfPayments: ['Fatura', 'Invoice'],
  pdfPaymentsNote: ['Da plataforma de pagamentos', 'From the payment platform'],
  pdfIxBrief: ['Certificado', 'Certified'],
  pdfIxNote: [
    'Para a sua contabilidade e a Autoridade Tributária',
    'For your accounts and the tax authority',
  ],
  pdfNone: ['Ainda não existe.', 'There is none yet.'],
  pdfDraft: ['Um rascunho ainda não tem PDF.', 'A draft has no PDF yet.'],
  download: ['Descarregar PDF', 'Download PDF'],
  downloading: ['A descarregar…', 'Downloading…'],
  notReady: (seconds: string) => [
    `O PDF ainda está a ser criado. Nova tentativa automática dentro de ${seconds} s.`,
    `The PDF is still being made. Trying again by itself in ${seconds} s.`,
  ],
  saved: (name: string) => [`Guardado como ${name}.`, `Saved as ${name}.`],

  statementTitle: ['Extrato de faturas', 'Statement of invoices'],
  statementOf: (day: string) => [`À data de ${day}`, `As of ${day}`],
  statementRange: (from: string | null, to: string | null) => [
    from && to ? `De ${from} a ${to}` : from ? `A partir de ${from}` : to ? `Até ${to}` : 'Todas as datas',
    from && to ? `${from} to ${to}` : from ? `From ${from}` : to ? `Up to ${to}` : 'All dates',
  ],
  statementFilters: (filters: string) => [`Apenas: ${filters}`, `Only: ${filters}`],
  totalWithTax: ['Total com IVA', 'Total with tax'],
  taxId: ['NIF', 'Tax ID'],
  totals: ['Totais por moeda', 'Totals by currency'],
  currency: ['Moeda', 'Currency'],
  billed: ['Faturado', 'Billed'],
  paid: ['Pago', 'Paid'],
  print: ['Imprimir ou guardar em PDF', 'Print or save as PDF'],

  signIn: ['Ver faturas', 'Show invoices'],
  signInLead: [
    'Abra a ligação que recebeu ou indique aqui um cliente e um código de acesso.',
    'Open the link that you were given, or enter a customer and an access token here.',
  ],
  customer: ['Cliente', 'Customer'],
  customerHint: ['Começa por cus_', 'Begins with cus_'],
  token: ['Código de acesso', 'Access token'],
  tokenHint: [
    'Fica neste separador e é esquecido quando o fechar.',
    'Stays in this tab, and is forgotten when you close it.',
  ],
  wrongCustomer: [
    'Um cliente começa por cus_, seguido de letras e algarismos.',
    'A customer begins with cus_, followed by letters and digits.',
  ],
  wrongToken: ['Indique um código de acesso.', 'Enter an access token.'],
  leave: ['Sair', 'Leave'],

  loading: ['A carregar as faturas…', 'Loading invoices…'],
  slow: ['Está a demorar mais do que o habitual.', 'This takes longer than usual.'],
  again: ['Tentar de novo', 'Try again'],
  another: ['Usar outro acesso', 'Use another access'],
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
    'As ligações são válidas por tempo limitado. Peça uma nova a quem lhe deu esta ou indique outro acesso.',
    'Links are good for a limited time. Ask for a new one where you got this one, or enter another access.',
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
    'Não permite ver as faturas deste cliente.',
    'It does not open the invoices of this customer.',
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
  unsearchableLead: ['Com menos palavras também se encontra.', 'Fewer words find it too.'],
  documentMissing: ['Este documento não existe.', 'There is no such document.'],

  pick: ['Escolher', 'Choose'],
  pickOf: (number: string) => [`Escolher a fatura ${number}`, `Choose invoice ${number}`],
  pickLead: ['Escolha uma fatura.', 'Choose an invoice.'],
  picked: (number: string) => [`Foi escolhida a fatura ${number}.`, `Invoice ${number} was chosen.`],
} satisfies Texts

const columns = {
  number: ['Fatura', 'Invoice'],
  issued: ['Data', 'Date'],
  status: ['Pagamento', 'Payment'],
  document: ['Documento certificado', 'Certified document'],
  total: ['Total', 'Total'],
  actions: ['Ações', 'Actions'],
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
}

const wordsIn = (language: Language) => ({
  ...invoiceWords[language],
  ...chooseWords(texts, language),
  column: chooseWords(columns, language),
  documentType: chooseWords(documentTypes, language),
})

export type Words = ReturnType<typeof wordsIn>
export type Language = 'pt' | 'en'

export const languages: Record<Language, { name: string; words: Words }> = {
  pt: { name: 'Português', words: wordsIn('pt') },
  en: { name: 'English', words: wordsIn('en') },
}

/** The first wish that is a language of the page; else English. */
export function pickLanguage(...wishes: readonly (string | null | undefined)[]): Language {
  const asked = wishes.map(wish => wish?.toLowerCase().split('-')[0])
  return asked.find(language => language === 'pt' || language === 'en') ?? 'en'
}
