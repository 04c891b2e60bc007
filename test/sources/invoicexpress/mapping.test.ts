/** InvoiceXpress' documents to ours, from the payloads in `payloads.json`. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Document, documentTypes } from '../../../src/domain/document.ts'
import { mapClient, mapDocument, writeDate } from '../../../src/sources/invoicexpress/map-document.ts'
import { SourceError } from '../../../src/sources/source.ts'
import { readPayloads } from '../../support/worlds/payloads.ts'

interface Payload {
  payload: Record<string, unknown>
  /** Null: it certifies nothing. */
  expected: Document | null | 'unfit'
}

const payloads = readPayloads<Payload>(new URL('payloads.json', import.meta.url))
const { payload: settled } = payloads.get('settled') ?? assert.fail()

function assertUnfit(map: () => unknown): void {
  assert.throws(map, (error: unknown) => {
    assert.ok(error instanceof SourceError)
    assert.deepEqual([error.failure, error.cause], ['failed', undefined])
    assert.match(
      error.message,
      /^InvoiceXpress sent a \w+ that does not fit(: [a-z_]+(, [a-z_]+)* (is|are) [a-z ]+)?$/,
    )
    assert.equal(error.scope, 'record')
    return true
  })
}

describe('the mapping of an InvoiceXpress document', () => {
  for (const [name, { about, payload, expected }] of payloads)
    test(`${name}: ${about}`, () => {
      if (expected === 'unfit') assertUnfit(() => mapDocument(payload))
      else assert.deepEqual(mapDocument(Object.freeze(payload)), expected)
    })

  test('is tested for every type with and without an invoice', () => {
    const types = [...payloads.values()].filter(({ expected }) => expected !== 'unfit')
    for (const type of documentTypes) assert.ok(types.some(({ payload }) => payload.type === type))
    assert.ok(types.some(({ expected }) => expected === null))
  })
})

test('a value that is not an object is neither a document nor a client', () => {
  for (const value of [undefined, null, 17, 'Invoice', [], [settled], {}, true]) {
    assertUnfit(() => mapDocument(value))
    assertUnfit(() => mapClient(value))
  }
})

test('a document with one field replaced by any value is valid, ignored or refused', () => {
  const fields = Object.keys(settled)
  fc.assert(
    fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
      let document: Document | null
      try {
        document = mapDocument({ ...settled, [field]: value })
      } catch (error) {
        return assert.ok(error instanceof SourceError)
      }
      if (document === null) return assert.equal(field, 'type')
      assert.ok(Number.isSafeInteger(document.id) && document.id > 0)
      assert.ok(documentTypes.includes(document.type))
      assert.match(document.total, /^-?\d+(\.\d+)?$/)
      assert.match(document.date ?? '2026-01-01', /^\d{4}-\d\d-\d\d$/)
      for (const text of [document.reference, document.number, document.currency]) assert.notEqual(text, '')
    }),
    { numRuns: 2_000 },
  )
})

test('amounts in cents are read exactly', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1_000_000_000_000, max: 1_000_000_000_000 }), cents => {
      const total = JSON.parse(String(cents / 100))
      const text = mapDocument({ ...settled, total })?.total ?? ''
      const [whole = '', decimals = ''] = text.split('.')
      assert.equal(BigInt(whole.replace('-', '') + decimals.padEnd(2, '0')), BigInt(Math.abs(cents)))
      assert.equal(text.startsWith('-'), cents < 0)
    }),
  )
})

test('a day that is sent to InvoiceXpress is read back unchanged', () => {
  const day = fc.date({ min: new Date('1900-01-01'), max: new Date('2999-12-31'), noInvalidDate: true })
  fc.assert(
    fc.property(day, date => {
      const iso = date.toISOString().slice(0, 10)
      assert.equal(mapDocument({ ...settled, date: writeDate(iso) })?.date, iso)
    }),
  )
})

describe('the mapping of an InvoiceXpress client', () => {
  test('reads the tax ID as text, or as null', () => {
    const cases: [fiscalId: unknown, taxId: string | null][] = [
      ['508025338', '508025338'],
      ['', null],
      [null, null],
      [undefined, null],
      [508025338, '508025338'],
    ]
    for (const [fiscal_id, tax_id] of cases)
      for (const id of [4455, '4455'])
        assert.deepEqual(mapClient({ id, name: 'Ana', fiscal_id }), { id: 4455, tax_id })
  })

  test('refuses a client with an invalid ID or tax ID', () => {
    for (const client of [
      { fiscal_id: '5' },
      { id: 'ana' },
      { id: 0 },
      { id: '0' },
      { id: 1, fiscal_id: ['5'] },
    ])
      assertUnfit(() => mapClient(client))
    assertUnfit(() => mapClient({ id: 1, fiscal_id: '5\0' }))
  })
})
