/** The certified document's body. */
import { exampleDocument } from './examples.ts'
import { cents, currency, resource, text, textOrNull, wholeOrNull } from './field-schemas.ts'
import { Type } from './type.ts'

const centsOrNull = (description: string) =>
  wholeOrNull(`${description}, in the currency's smallest unit; null when not known.`)
const dayOrNull = (description: string) => textOrNull(description, { format: 'date' })
const orNull = (schema: object, description: string) =>
  Type.Unsafe<unknown>({ anyOf: [schema, { type: 'null' }], description })

const documentFields = {
  id: Type.Integer({ minimum: 1, description: 'ID at the external invoicing system.' }),
  type: text("The external system's own word, for example `InvoiceReceipt` or `CreditNote`."),
  status: text("The external system's own word, for example `final` or `settled`."),
  number: textOrNull('Number as printed, for example `FR A/123`; null until it is issued.'),
  date: dayOrNull('Day that it carries, YYYY-MM-DD.'),
  total_cents: centsOrNull('Total after taxes'),
}

const DocumentTax = resource('DocumentTax', 'The tax of a rate.', {
  rate_percent: Type.Number({ description: 'Tax rate in percent.' }),
  base_cents: cents('Amount before the tax'),
  tax_cents: cents('Tax'),
})

const RelatedDocument = resource(
  'RelatedDocument',
  'A credit note, debit note or receipt about a document.',
  documentFields,
)

const InvoiceDocument = resource(
  'InvoiceDocument',
  'The external document of an invoice.',
  {
    ...documentFields,
    series: textOrNull('Series, for example `A`; null until it is issued.'),
    atcud: textOrNull("The tax authority's code of the document, for example `ABCD1234-123`."),
    due_date: dayOrNull('Day on which it is due, YYYY-MM-DD.'),
    before_tax_cents: centsOrNull('Total before taxes'),
    tax_cents: centsOrNull('Taxes'),
    currency,
    taxes: orNull(
      Type.Array(Type.Ref('DocumentTax')),
      'Taxes by rate, the highest first; null when not known.',
    ),
    exemption_code: textOrNull('Reason for which no tax is due, for example `M07`.'),
    qr_path: textOrNull("Path of the QR code's image on this host; null when there is none."),
    related: orNull(
      Type.Array(Type.Ref('RelatedDocument')),
      'Credit notes, debit notes and receipts; null until they were read.',
    ),
  },
  exampleDocument,
)

export const documentComponents = [InvoiceDocument, DocumentTax, RelatedDocument]
