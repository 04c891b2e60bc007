/** Prints invoices and documents with seller, customer, lines, taxes and totals. */
import { decimalsOf } from '../src/domain/money.ts'
import {
  formatMajor,
  type IxClient,
  type IxDocument,
  ixTypes,
  printedOf,
  printedTypeOf,
  withheldFrom,
} from './invoicexpress/objects.ts'
import { type Colour, createPaper, type Paper } from './paper.ts'
import type { StripeInvoice } from './stripe/objects.ts'

interface Content {
  title: string
  accent: Colour
  /** Names and values on the right side, below the title. */
  facts: readonly (readonly [name: string, value: string])[]
  customer: readonly string[]
  lines: readonly { description: string; quantity: string; price: string; tax: string; amount: string }[]
  totals: readonly (readonly [name: string, value: string])[]
  total: string
  footer: string
}

const seller = ['Sandbox, Lda.', 'Rua do Ensaio, 12, 3.º', '1200-109 Lisboa, Portugal', 'NIF 500 000 000']
const disclaimer = 'Documento de demonstração, sem valor fiscal.'

export function createPdf(invoice: StripeInvoice): Buffer {
  const { number, total, currency, customer_name, customer_email, effective_at, created } = invoice
  const amount = (cents: number) => formatAmount(cents, currency)
  const discount = invoice.total_discount_amounts.reduce((all, { amount }) => all + amount, 0)
  const [taxId] = invoice.customer_tax_ids ?? []
  return draw({
    title: `Fatura ${number}`,
    accent: [0.39, 0.36, 1],
    facts: [
      ['Data', formatIsoDay(effective_at ?? created)],
      ['Estado', paymentWords[invoice.status]],
      ['Moeda', currency.toUpperCase()],
    ],
    customer: [
      customer_name ?? 'Cliente não indicado',
      customer_email ?? '',
      taxId === undefined ? '' : `NIF ${taxId.value}`,
    ],
    lines: invoice.lines.data.map(line => ({
      description: line.description ?? 'Serviço',
      quantity: line.quantity_decimal ?? String(line.quantity ?? 1),
      price: formatDecimal(Number(line.pricing?.unit_amount_decimal ?? line.subtotal), currency),
      tax: line.taxes.map(tax => `${percentOf(tax)} %`).join(' + ') || 'Isento',
      amount: formatDecimal(line.amount, currency),
    })),
    totals: [
      ['Subtotal', amount(invoice.subtotal)],
      ...(discount === 0 ? [] : [['Desconto', amount(-discount)] as const]),
      ...invoice.total_taxes.map(
        tax =>
          [
            `IVA ${percentOf(tax)} %${tax.tax_behavior === 'inclusive' ? ', incluído' : ''}`,
            amount(tax.amount),
          ] as const,
      ),
    ],
    total: amount(total),
    footer: 'Emitida pela plataforma de pagamentos local.',
  })
}

export function createDocumentPdf(document: IxDocument, client?: IxClient): Buffer {
  const { sequence_number, date, due_date, reference, items } = document
  const amount = (euros: number) => formatMajor(euros, 'eur')
  const plain = (euros: number) => euros.toFixed(2)
  return draw({
    title: `${ixTypes[printedTypeOf(document)].title} ${sequence_number}`,
    accent: [0.04, 0.4, 0.31],
    facts: [
      ['Data', date],
      ['Vencimento', due_date],
      ['Referência', reference ?? 'nenhuma'],
      ['Moeda', document.currency],
    ],
    customer: [
      document.client.name,
      document.client.country,
      client?.fiscal_id ? `NIF ${client.fiscal_id}` : 'Sem NIF',
    ],
    lines: items.map(item => ({
      description: item.name,
      quantity: item.quantity,
      price: plain(Number(item.unit_price)),
      tax: item.tax.value === 0 ? 'Isento' : `${item.tax.value} %`,
      amount: plain(Number(item.unit_price) * Number(item.quantity)),
    })),
    totals: [
      ['Soma', amount(document.sum)],
      ...(document.discount === 0 ? [] : [['Desconto', amount(-document.discount)] as const]),
      ['Sem impostos', amount(document.before_taxes)],
      ['IVA', amount(document.taxes)],
      ...describeApart(document),
    ],
    total: amount(document.total),
    footer: `ATCUD: ${printedOf(document).atcud}. Processado por programa não certificado, para ensaios.`,
  })
}

/** Yields the withheld tax and the total in the invoice's currency. */
function* describeApart(document: IxDocument): Iterable<readonly [name: string, value: string]> {
  const { retention, multicurrency } = document
  if (retention !== null) yield [`Retenção ${retention} %`, formatMajor(-withheldFrom(document), 'eur')]
  if (multicurrency === undefined) return
  const { rate, code, total } = multicurrency
  yield [`Total (câmbio ${rate})`, formatMajor(total, code)]
}

const paymentWords: Record<StripeInvoice['status'], string> = {
  draft: 'Rascunho',
  open: 'Por pagar',
  paid: 'Paga',
  void: 'Anulada',
  uncollectible: 'Incobrável',
}

const [left, right] = [48, 547]
const columns = { quantity: 330, price: 410, tax: 470, amount: right }
const quiet: Colour = [0.36, 0.42, 0.39]
const lineHeight = 20
const bottom = 770

function draw(content: Content): Buffer {
  const paper = createPaper()
  drawHead(paper, content)
  let y = drawTableHead(paper, 262, content.accent)
  for (const line of content.lines) {
    if (y > bottom - lineHeight) {
      paper.newPage()
      y = drawTableHead(paper, 60, content.accent)
    }
    paper.text(left + 8, y, line.description, { fit: 220 })
    for (const name of ['quantity', 'price', 'tax', 'amount'] as const)
      paper.text(columns[name] - (name === 'amount' ? 8 : 0), y, line[name], { right: true })
    paper.rule(left, y + 7, right - left)
    y += lineHeight
  }
  // The totals are kept together on one page.
  if (y + content.totals.length * 18 + 40 > bottom) {
    paper.newPage()
    y = 60
  }
  y += 12
  for (const [name, value] of content.totals) {
    paper.text(340, y, name, { colour: quiet })
    paper.text(right - 8, y, value, { right: true })
    y += 18
  }
  paper.area(332, y - 8, right - 332, 28, content.accent)
  paper.text(340, y + 10, 'Total', { size: 12, bold: true, colour: [1, 1, 1] })
  paper.text(right - 8, y + 10, content.total, { size: 12, bold: true, colour: [1, 1, 1], right: true })
  paper.onEachPage((page, pages) => {
    paper.rule(left, 792, right - left)
    paper.text(left, 806, `${content.footer} ${disclaimer}`, { size: 8, colour: quiet })
    paper.text(right, 806, `${page}/${pages}`, { size: 8, colour: quiet, right: true })
  })
  return paper.finish()
}

function drawHead(paper: Paper, { title, accent, facts, customer }: Content): void {
  paper.area(0, 0, paper.width, 8, accent)
  const [name = '', ...address] = seller
  paper.text(left, 62, name, { size: 16, bold: true })
  for (const [index, line] of address.entries()) paper.text(left, 80 + index * 13, line, { colour: quiet })
  paper.text(330, 62, title, { size: 15, bold: true, colour: accent })
  for (const [index, [label, value]] of facts.entries()) {
    paper.text(330, 84 + index * 15, label, { colour: quiet })
    paper.text(395, 84 + index * 15, value)
  }
  paper.text(left, 168, 'Cliente', { size: 8, bold: true, colour: accent })
  for (const [index, line] of customer.filter(Boolean).entries())
    paper.text(left, 184 + index * 14, line, index === 0 ? { size: 11, bold: true } : { colour: quiet })
}

/** Returns the y coordinate of the first line. */
function drawTableHead(paper: Paper, y: number, accent: Colour): number {
  paper.area(left, y - 14, right - left, 22, [0.94, 0.95, 0.945])
  const style = { size: 8, bold: true, colour: accent }
  paper.text(left + 8, y, 'Descrição', style)
  paper.text(columns.quantity, y, 'Quantidade', { ...style, right: true })
  paper.text(columns.price, y, 'Preço', { ...style, right: true })
  paper.text(columns.tax, y, 'IVA', { ...style, right: true })
  paper.text(columns.amount - 8, y, 'Valor', { ...style, right: true })
  return y + 24
}

const formatIsoDay = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 10)

/** Returns a percentage with one decimal. */
function percentOf({ amount, taxable_amount }: { amount: number; taxable_amount: number }): number {
  return taxable_amount === 0 ? 0 : Math.round((amount / taxable_amount) * 1000) / 10
}

/** Formats an amount in the major unit, for example 12.34. */
function formatDecimal(amount: number, currency: string): string {
  const places = decimalsOf(currency)
  return (amount / 10 ** places).toFixed(places)
}

/** Formats an amount with its currency, for example "12.34 EUR". */
export function formatAmount(amount: number, currency: string): string {
  return `${formatDecimal(amount, currency)} ${currency.toUpperCase()}`
}
