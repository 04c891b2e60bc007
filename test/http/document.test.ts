/** The certified document of an invoice: from InvoiceXpress through the connector and the store to the API. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import type { IxDocument } from '../../sandbox/invoicexpress/objects.ts'
import type { InvoiceDocument } from '../../src/domain/invoice.ts'
import { createClient } from '../../src/sdk/client.ts'
import { createInvoicingSystem } from '../../src/sources/invoicexpress/invoicing-system.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { anyOrdinary, type DocumentRig, startOrdinary } from '../support/worlds/documents.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { assertError, startService } from '../support/worlds/service.ts'

/** The service on the store that the connectors fill. */
function serve(t: Parameters<typeof startService>[0], rig: DocumentRig) {
  const engine: Engine = { name: 'given', createStore: async () => rig.url }
  const ix = { account: null, apiKey: 'canary_key_of_invoicexpress', base: rig.ix.address }
  return startService(t, engine, { documents: createInvoicingSystem(ix) })
}

const smallest: Record<string, number> = { usd: 100, jpy: 1, kwd: 1_000 }

/** The total in the invoice's currency, as it is to be shown. */
function convertedOf({ multicurrency }: IxDocument): InvoiceDocument['in_invoice_currency'] {
  if (multicurrency === undefined) return null
  const { code, total, rate } = multicurrency
  const currency = { currency: code, total_cents: Math.round(total * (smallest[code] ?? 100)) }
  return { ...currency, rate }
}

for (const engine of engines)
  describe(`the document of an invoice on ${engine.name}`, () => {
    test('an invoice’s document is shown with InvoiceXpress’ values, its QR code and related documents', async t => {
      const rig = await startOrdinary(t, engine, { invoices: 40 })
      const service = await serve(t, rig)
      const [id, documentId] = anyOrdinary(rig, 'open')
      const { customer_id } = await rig.invoice(id)
      const path = `/api/v1/client/${customer_id}/invoice/${id}/document`
      const truth = rig.documents.documents.get(documentId) ?? assert.fail()
      const before = await service.get(path)
      assert.equal(before.status, 200, before.text)
      const shown: InvoiceDocument = before.json
      const [number, series] = truth.sequence_number?.split('/') ?? []
      const codes: Record<string, string> = { Invoice: 'FT', SimplifiedInvoice: 'FS', VatMossInvoice: 'FVM' }
      assert.equal(shown.number, `${codes[truth.type]} ${series}/${number}`)
      assert.deepEqual(
        [shown.id, shown.type, shown.status, shown.series],
        [documentId, truth.type, 'final', series],
      )
      assert.match(shown.atcud ?? '', new RegExp(`^[A-Z0-9]{8}-${number}$`))
      const day = (text: string) => text.split('/').reverse().join('-')
      assert.deepEqual([shown.date, shown.due_date], [day(truth.date), day(truth.due_date)])
      const cents = (amount: number) => Math.round(amount * 100)
      assert.deepEqual([shown.currency, shown.in_invoice_currency], ['eur', convertedOf(truth)])
      assert.deepEqual(
        [shown.before_tax_cents, shown.tax_cents, shown.gross_cents, shown.total_cents],
        [truth.before_taxes, truth.taxes, truth.before_taxes + truth.taxes, truth.total].map(cents),
      )
      assert.equal(
        shown.taxes?.reduce((sum, { tax_cents }) => sum + tax_cents, 0),
        shown.tax_cents,
      )
      assert.deepEqual(shown.related, [])

      assert.equal(shown.buyer_name, truth.client.name)
      assert.equal(
        shown.multibanco?.reference,
        truth.client.country === 'Portugal' && truth.multicurrency === undefined
          ? String(documentId).padStart(9, '0')
          : undefined,
      )

      // Freshness and conditions as of a detail.
      assert.equal(before.headers['cache-control'], 'private, no-cache')
      assert.ok(before.headers['fatura-synced-at'])
      const etag = String(before.headers.etag)
      const held = await service.get(path, { headers: { 'if-none-match': etag } })
      assert.deepEqual([held.status, held.text, held.headers.etag], [304, '', etag])

      // The image passes as it is, and nothing names its address.
      const token = await service.createToken({ customers: [customer_id] })
      const client = createClient({ baseUrl: service.address, token })
      const image = Buffer.from(await (await client.document.qr(customer_id, id)).arrayBuffer())
      assert.equal(image.subarray(0, 8).toString('hex'), '89504e470d0a1a0a')
      assert.equal(shown.qr_path, `${path}/qr`)

      // A credit note comes without any change of the document itself: it is seen on the next round over relations.
      const noteId = rig.documents.change('credit', documentId, '0.5')
      const note = rig.documents.documents.get(noteId) ?? assert.fail()
      await agePastDay(rig)
      await rig.sync.refreshOpen()
      const { data } = await client.document.get(customer_id, id)
      assert.deepEqual(data.related, [
        {
          id: noteId,
          type: 'CreditNote',
          number: `NC NC/${note.sequence_number?.split('/')[0]}`,
          date: day(note.date),
          gross_cents: cents(note.total),
          total_cents: cents(note.total),
          in_invoice_currency: convertedOf(note),
          status: 'final',
        },
      ])
      // Its PDF comes by the same way; a document that is not about this one does not exist.
      const related = (documentId: number | string) =>
        service.get(`/api/v1/client/${customer_id}/invoice/${id}/related/${documentId}/download`)
      const notePdf = await related(noteId)
      assert.deepEqual([notePdf.status, notePdf.headers['content-type']], [200, 'application/pdf'])
      assert.equal(
        notePdf.headers['content-disposition'],
        `attachment; filename="${data.related?.[0]?.number?.replace('/', '-')} ${id.slice(-8)}.pdf"`,
      )
      assertError(await related(documentId), 404, 'document_not_found')
      assertError(await related('x'), 400, 'invalid_parameter', 'documentId')

      const { data: summary } = await client.summary(customer_id)
      const theirs = convertedOf(note)
      const sums = summary.currencies.find(({ currency }) => currency === (theirs?.currency ?? 'eur'))
      assert.equal(sums?.credited_cents, theirs?.total_cents ?? cents(note.total))
      const changed = await service.get(path, { headers: { 'if-none-match': etag } })
      assert.equal(changed.status, 200)

      // Search and file name.
      for (const q of [shown.number, shown.atcud, `${series}/${number}`]) {
        const found = await service.list(`?q=${encodeURIComponent(q ?? '')}`, { customer: customer_id })
        assert.ok(
          found.json.invoices.some((invoice: { id: string }) => invoice.id === id),
          String(q),
        )
      }
      const pdf = await service.get(`/api/v1/client/${customer_id}/invoice/${id}/ix/download`)
      assert.equal(
        pdf.headers['content-disposition'],
        `attachment; filename="${shown.number?.replace('/', '-')} ${id.slice(-8)}.pdf"`,
      )
      assert.equal(await rig.store.checkCounts(), 0)
    })

    test('a document in another currency is shown in euros, beside the invoice’s total and the exchange rate', async t => {
      const rig = await startOrdinary(t, engine, { invoices: 120, customers: 12 })
      const service = await serve(t, rig)
      const seen = new Set<string>()
      for (const truth of rig.documents.documents.values()) {
        const invoice = rig.account.invoices.get(truth.reference ?? '')
        if (truth.multicurrency === undefined || !invoice?.customer) continue
        const path = `/api/v1/client/${invoice.customer}/invoice/${invoice.id}/document`
        const shown: InvoiceDocument = (await service.get(path)).json
        assert.deepEqual(shown.in_invoice_currency, convertedOf(truth), String(truth.id))
        assert.equal(shown.in_invoice_currency?.total_cents, invoice.total)
        assert.deepEqual([shown.currency, shown.total_cents], ['eur', Math.round(truth.total * 100)])
        seen.add(invoice.currency)
      }
      assert.deepEqual([...seen].sort(), ['jpy', 'kwd', 'usd'])
    })

    test('a document with retained tax has the invoice’s gross amount and a smaller total', async t => {
      const rig = await startOrdinary(t, engine, { invoices: 120, customers: 12 })
      const service = await serve(t, rig)
      const withheld = [...rig.documents.documents.values()].filter(({ retention }) => retention !== null)
      assert.ok(withheld.length > 0)
      for (const { reference, before_taxes, taxes, total, retention } of withheld) {
        const invoice = rig.account.invoices.get(reference ?? '') ?? assert.fail()
        const path = `/api/v1/client/${invoice.customer}/invoice/${invoice.id}/document`
        const shown: InvoiceDocument = (await service.get(path)).json
        const kept = Math.round((before_taxes + taxes - total) * 100)
        assert.deepEqual(
          [shown.gross_cents, shown.total_cents, shown.retention_cents, shown.retention_percent],
          [invoice.total, invoice.total - kept, kept, Number(retention)],
        )
        assert.equal(shown.tax_cents, Math.round(taxes * 100))
      }
    })

    test('no document is shown when it is not linked, not read or of another customer', async t => {
      const service = await startService(t, engine, {
        records: [
          makeRecord({ id: 'in_none', customer_id: 'cus_ana' }),
          makeRecord({ id: 'in_bob', customer_id: 'cus_bob' }),
        ],
      })
      for (const path of ['document', 'document/qr']) {
        assertError(
          await service.get(`/api/v1/client/cus_ana/invoice/in_none/${path}`),
          404,
          'document_not_found',
        )
        assertError(
          await service.get(`/api/v1/client/cus_ana/invoice/in_bob/${path}`),
          404,
          'invoice_not_found',
        )
      }
    })
  })

/** As if the relations had been read over a day ago. */
async function agePastDay({ store }: DocumentRig): Promise<void> {
  const relations = await store.readContents('relations', null, 1_000)
  await store.transaction(tx =>
    tx.writeContents(
      'relations',
      relations.map(([id = null, text = null]) => [id, text, 1]),
    ),
  )
}

test('fields that a list leaves out are read with the single document, and stay stored', async t => {
  const [engine = assert.fail()] = engines
  const rig = await startOrdinary(t, engine, { invoices: 150, customers: 12 })
  const left = [...rig.documents.documents.values()].filter(
    ({ status, reference }) => status !== 'draft' && rig.account.invoices.get(reference ?? '')?.customer,
  )
  const partial = left.filter(({ id }) => id % 7 === 0)
  // A list may have all of a document but its invoice's currency.
  const withoutCurrency = left.filter(
    ({ id, multicurrency }) => id % 7 !== 0 && id % 25 === 0 && multicurrency !== undefined,
  )
  assert.ok(partial.length > 0 && withoutCurrency.length > 0)
  while ((await rig.sync.sweepMonth()) !== null);
  const stored = await rig.store.findDocuments({ ids: partial.map(({ id }) => id), references: [] })
  for (const { document, relations } of stored) {
    assert.match(document?.atcud ?? '', /^[A-Z0-9]{8}-\d+$/)
    assert.equal(relations?.has_qr, true)
  }
  const foreign = await rig.store.findDocuments({ ids: withoutCurrency.map(({ id }) => id), references: [] })
  for (const [index, { document }] of foreign.entries())
    assert.equal(Number(document?.multicurrency?.total), withoutCurrency[index]?.multicurrency?.total)
})

test('a round reads the relations of each document once a day, and at once after a change', async t => {
  const [engine = assert.fail()] = engines
  const rig = await startOrdinary(t, engine, { invoices: 40 })
  const asked = () => rig.ix.requests.get('ix_related') ?? 0
  const before = asked()
  await rig.sync.refreshOpen()
  assert.equal(asked(), before)
  const [, documentId] = anyOrdinary(rig, 'open')
  rig.documents.change('settle', documentId)
  await rig.sync.refreshOpen()
  assert.equal(asked(), before + 1)
})

test('invalid fields of a stored document are counted until they are valid', async t => {
  const [engine = assert.fail()] = engines
  const rig = await startOrdinary(t, engine, { invoices: 40 })
  const [id, documentId] = anyOrdinary(rig, 'open')
  const document = rig.documents.documents.get(documentId) ?? assert.fail()
  rig.documents.documents.set(documentId, { ...document, due_date: 'soon' })
  await rig.sync.refreshOpen()
  const setAside = async () =>
    (await rig.store.listSetAside(10, 'invoicexpress')).map(({ kind, id, reason }) => [kind, id, reason])
  assert.deepEqual(await setAside(), [['field', String(documentId), 'left out: due_date']])
  assert.equal((await rig.invoice(id)).ix_id, documentId)
  rig.documents.documents.set(documentId, document)
  await rig.sync.refreshOpen()
  assert.deepEqual(await setAside(), [])
})

test('the bytes of PDFs of both systems pass unchanged', async t => {
  const [engine = assert.fail()] = engines
  const { Readable } = await import('node:stream')
  const bytes = Buffer.concat([
    Buffer.from('%PDF-1.7\n'),
    Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 2_654_435_761) >>> 24)),
  ])
  const openPdf = async () => ({ body: Readable.from([bytes]), size: bytes.length })
  const service = await startService(t, engine, {
    payments: { fetchLines: async () => null, openPdf },
    documents: { openPdf },
    records: [
      makeRecord({
        id: 'in_pdf',
        customer_id: 'cus_ana',
        status: 'paid',
        ix_id: 7,
        ix_status: 'settled',
        ix_sync_state: 'synced',
      }),
    ],
  })
  const token = await service.createToken()
  for (const kind of ['ix', 'payments']) {
    const answer = await fetch(`${service.address}/api/v1/client/cus_ana/invoice/in_pdf/${kind}/download`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const sent = createHash('sha256')
      .update(Buffer.from(await answer.arrayBuffer()))
      .digest('hex')
    assert.equal(sent, createHash('sha256').update(bytes).digest('hex'), kind)
  }
})
