/** The free-text search `q`: what a person types finds what they mean, and nothing is a wildcard. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { InvoiceRecord } from '../../src/domain/invoice.ts'
import { campaign } from '../support/checks/campaign.ts'
import { expectedPage, writeQuestion } from '../support/checks/model.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { type Answer, assertError, shareService } from '../support/worlds/service.ts'

/** A customer with records of its own, in a service that others share. */
interface Customer {
  id: string
  list(query: string): Promise<Answer>
  save(...records: InvoiceRecord[]): Promise<void>
}

function shareCustomers(engine: Engine): (records: readonly InvoiceRecord[]) => Promise<Customer> {
  const service = shareService(engine)
  let customers = 0
  return async records => {
    const id = `cus_${++customers}`
    const customer: Customer = {
      id,
      list: query => service().list(query, { customer: id }),
      save: (...given) =>
        service().save(
          ...given.map(({ invoice, ...rest }) => ({ ...rest, invoice: { ...invoice, customer_id: id } })),
        ),
    }
    await customer.save(...records)
    return customer
  }
}

async function find(service: Customer, q: string): Promise<string[]> {
  const answer = await service.list(`?q=${encodeURIComponent(q)}&page_size=50`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.invoices.map((invoice: { id: string }) => invoice.id).sort()
}

const nobody = {
  display_name: 'x',
  customer_name: null,
  customer_email: null,
  company_name: null,
  customer_tax_id: null,
  number: null,
}

for (const engine of engines) {
  describe(`search on ${engine.name}`, () => {
    const add = shareCustomers(engine)

    test('looks only at ID, number, names, e-mail, tax ID and ix_id', async () => {
      const service = await add([
        makeRecord({ ...nobody, id: 'in_needle1' }),
        makeRecord({ ...nobody, id: 'in_2', number: 'needle2' }),
        makeRecord({ ...nobody, id: 'in_3', display_name: 'needle3' }),
        makeRecord({ ...nobody, id: 'in_4', customer_name: 'needle4' }),
        makeRecord({ ...nobody, id: 'in_5', customer_email: 'needle5@x.example' }),
        makeRecord({ ...nobody, id: 'in_6', company_name: 'needle6' }),
        makeRecord({ ...nobody, id: 'in_7', customer_tax_id: 'needle7' }),
        makeRecord({ ...nobody, id: 'in_8', ix_id: 7654321, ix_sync_state: 'synced' }),
        makeRecord({
          ...nobody,
          id: 'in_9',
          currency: 'zzz',
          ix_status: 'needlestatus',
          status: 'uncollectible',
        }),
      ])
      for (const [n, id] of ['in_needle1', 'in_2', 'in_3', 'in_4', 'in_5', 'in_6', 'in_7'].entries())
        assert.deepEqual(await find(service, `needle${n + 1}`), [id])
      assert.deepEqual(await find(service, '765432'), ['in_8'])
      for (const q of ['needlestatus', 'uncollectible', 'zzz', 'not_synced', 'null'])
        assert.deepEqual(await find(service, q), [], q)
    })

    test('finds all invoices by the customer’s own ID or its beginning, and none by another’s', async () => {
      const service = await add([
        makeRecord({ ...nobody, id: 'in_1', number: 'A-1' }),
        makeRecord({ ...nobody, id: 'in_2', number: 'B-2' }),
      ])
      for (const q of [service.id, service.id.toUpperCase(), 'cus_'])
        assert.deepEqual(await find(service, q), ['in_1', 'in_2'], q)
      assert.deepEqual(await find(service, `${service.id} b2`), ['in_2'])
      // Without the prefix, and by less than it, a word is not meant as the customer's id.
      for (const q of [`${service.id}x`, 'cus_none', 'us_', 'cus'])
        assert.deepEqual(await find(service, q), [], q)
    })

    test('ignores case and accents: JOAO finds joão, in NFC and NFD', async () => {
      const service = await add([
        makeRecord({ ...nobody, id: 'in_accent', display_name: 'João Conceição' }),
        makeRecord({ ...nobody, id: 'in_nfd', display_name: 'João Conceição'.normalize('NFD') }),
        makeRecord({ ...nobody, id: 'in_plain', display_name: 'JOAO CONCEICAO' }),
      ])
      for (const q of [
        'joão',
        'JOAO',
        'João',
        'JOÃO'.normalize('NFD'),
        'conceicao JOÃO',
        'oão conc',
        '  joao  ',
      ])
        assert.deepEqual(await find(service, q), ['in_accent', 'in_nfd', 'in_plain'], q)
    })

    test('ignores compatibility forms, ligatures, ß, sigma, dotless i and invisible characters', async () => {
      const service = await add([
        makeRecord({ ...nobody, id: 'in_ss', display_name: 'Straße' }),
        makeRecord({ ...nobody, id: 'in_fi', display_name: 'Oﬃcina' }),
        makeRecord({ ...nobody, id: 'in_wide', display_name: 'ＡＢＣ１２３' }),
        makeRecord({ ...nobody, id: 'in_sigma', display_name: 'ΟΔΟΣ' }),
        makeRecord({ ...nobody, id: 'in_turkish', display_name: 'İSTANBUL' }),
        makeRecord({ ...nobody, id: 'in_hidden', display_name: 'Pas\u00adte\u200bl' }),
        makeRecord({ ...nobody, id: 'in_kanji', display_name: '東京カステラ株式会社' }),
      ])
      const cases = {
        STRASSE: 'in_ss',
        straße: 'in_ss',
        officina: 'in_fi',
        abc123: 'in_wide',
        οδος: 'in_sigma',
        οδοσ: 'in_sigma',
        istanbul: 'in_turkish',
        pastel: 'in_hidden',
        'pa\u200bstel': 'in_hidden',
        カステラ: 'in_kanji',
      }
      for (const [q, id] of Object.entries(cases)) assert.deepEqual(await find(service, q), [id], q)
    })

    test('ignores separators: 2025 05128 and 202505128 find 2025-05128', async () => {
      const service = await add([
        makeRecord({ ...nobody, id: 'in_hyphen', number: '2025-05128' }),
        makeRecord({ ...nobody, id: 'in_other', number: '2025-05129' }),
        makeRecord({ ...nobody, id: 'in_slash', number: 'FT 2024/07' }),
        makeRecord({ ...nobody, id: 'in_comma', display_name: 'Padaria São Bento, Lda.' }),
      ])
      for (const q of [
        '2025-05128',
        '2025 05128',
        '2025/05128',
        '202505128',
        '2025.05128',
        '2025–05128',
        ' 2025-05128 ',
        '2025-05128\u00a0',
        '\t2025\n05128',
        '05128 2025',
      ])
        assert.deepEqual(await find(service, q), ['in_hyphen'], JSON.stringify(q))
      for (const q of ['FT2024/07', 'ft 2024-07', 'FT 2024 / 07', 'ft202407'])
        assert.deepEqual(await find(service, q), ['in_slash'], q)
      for (const q of ['sao bento lda', 'São-Bento', 'Padaria - Bento', 'padaria são bento, lda.'])
        assert.deepEqual(await find(service, q), ['in_comma'], q)
    })

    test('finds a tax ID with or without its country prefix and spaces', async () => {
      const service = await add([
        makeRecord({ ...nobody, id: 'in_prefixed', customer_tax_id: 'PT509442013' }),
        makeRecord({ ...nobody, id: 'in_bare', customer_tax_id: '509442013' }),
        makeRecord({ ...nobody, id: 'in_spaced', customer_tax_id: 'PT 509 442 013' }),
        makeRecord({ ...nobody, id: 'in_number', number: '9509442013' }),
        makeRecord({ ...nobody, id: 'in_other', customer_tax_id: 'PT999999990' }),
      ])
      const all = ['in_bare', 'in_prefixed', 'in_spaced']
      for (const q of ['PT509442013', 'pt509442013', 'PT-509442013', 'PT 509442013', 'pt 509 442 013'])
        assert.deepEqual(await find(service, q), all, q)
      for (const q of ['509442013', '509 442 013'])
        assert.deepEqual(await find(service, q), [...all.slice(0, 1), 'in_number', ...all.slice(1)], q)
    })

    test('needs every word in some field, in any order, and each word within one field', async () => {
      const service = await add([
        makeRecord({ ...nobody, id: 'in_1', display_name: 'Ana', company_name: 'Lima', number: 'A-1' }),
      ])
      assert.deepEqual(await find(service, 'lima ana a1'), ['in_1'])
      assert.deepEqual(await find(service, 'lima ana bob'), [])
      assert.deepEqual(await find(service, 'analima'), [])
      assert.deepEqual(await find(service, 'in_1ana'), [])
    })

    test('takes wildcards and other special characters as plain text', async () => {
      const specials = [
        '%',
        '_',
        '*',
        '?',
        '\\',
        '[a]',
        '^',
        '$',
        '"',
        "'",
        ';--',
        "' OR 1=1 --",
        '{}',
        '<b>',
        '|',
        '&',
        '+',
        '=',
        '~',
        '`',
        '@',
        '!',
        '🧾',
        '$x',
        '%25',
        '\\%',
        '%s',
      ]
      const service = await add([
        makeRecord({ ...nobody, id: 'in_plain', display_name: 'plain text' }),
        ...specials.map((special, i) =>
          makeRecord({ ...nobody, id: `in_${i}`, display_name: `a${special}b` }),
        ),
      ])
      for (const [i, special] of specials.entries()) {
        const found = await find(service, `a${special}b`)
        assert.ok(found.includes(`in_${i}`), special)
        assert.ok(!found.includes('in_plain'), special)
      }
      assert.deepEqual(await find(service, 'pl%in'), [])
      assert.deepEqual(await find(service, 'pl_in'), [])
      assert.deepEqual(await find(service, 'pl*'), [])
      assert.ok(!(await find(service, '%')).includes('in_plain'))
    })

    test('finds nothing for separators alone', async () => {
      const service = await add([makeRecord({ number: '2025-1' })])
      for (const q of ['-', '---', '. ,', '/', '\u200b', '\u0301', "'", '()'])
        assert.deepEqual(await find(service, q), [], q)
    })

    test('refuses more than 200 characters or a NUL with 400', async () => {
      const service = await add([makeRecord()])
      assertError(await service.list(`?q=${'x'.repeat(201)}`), 400, 'invalid_parameter', 'q')
      assertError(
        await service.list(`?q=${encodeURIComponent('🧾'.repeat(201))}`),
        400,
        'invalid_parameter',
        'q',
      )
      assertError(await service.list('?q=a%00b'), 400, 'invalid_parameter', 'q')
      assert.equal((await service.list(`?q=${'x'.repeat(200)}`)).status, 200)
      assert.equal((await service.list(`?q=++${'x'.repeat(200)}++`)).status, 200)
      assert.equal((await service.list(`?q=${encodeURIComponent('🧾'.repeat(200))}`)).status, 200)
      assert.equal((await service.list(`?q=${'a+'.repeat(100)}`)).status, 200)
    })

    test('refuses more than 10 different words with 400, without counting repeated words', async () => {
      const service = await add([makeRecord({ number: '2025-05128' })])
      const words = Array.from({ length: 100 }, (_, n) =>
        String.fromCharCode(97 + (n % 26), 97 + Math.floor(n / 26)),
      )
      for (const q of [words.slice(0, 11).join(' '), words.slice(0, 60).join(' '), 'á b c d e f g h i j k']) {
        const answer = await service.list(`?q=${encodeURIComponent(q)}`)
        assertError(answer, 400, 'invalid_parameter', 'q')
        assert.match(answer.json.error.message, /^q must have at most 10 different words, and has \d+; /)
      }
      const allowed = [
        words.slice(0, 10).join(' '),
        'x '.repeat(100),
        'Á a A á a\u0301 - b c d e f g h i j',
        '2025-05128 2 20 202 2025 20250 202505 2025051 20250512 05128 051 05 0',
      ]
      for (const q of allowed)
        assert.equal((await service.list(`?q=${encodeURIComponent(q)}`)).status, 200, q)
      assert.equal((await service.list(`?q=${encodeURIComponent(allowed[3] ?? '')}`)).json.total, 1)
    })

    test('gives the same answer with or without words that are part of other words', async () => {
      const parts = [null, '509442013', 'PT509442013', 'PT 509 442 013', '50944', 'pt50', '509']
      const records = parts.flatMap(customer_tax_id =>
        parts.map(number => makeRecord({ ...nobody, customer_tax_id, number })),
      )
      const service = await add(records)
      const invoices = records.map(({ invoice }) => ({ ...invoice, customer_id: service.id }))
      const pieces = [
        'pt',
        'PT',
        '509',
        '442',
        '013',
        '509442013',
        'pt509442013',
        'PT50944201',
        '50944',
        'es',
        '5',
      ]
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 12 }),
          async given => {
            const question = { q: given.join(' ') }
            const { status, json } = await service.list(writeQuestion(question))
            assert.equal(status, 200)
            assert.deepEqual(json, expectedPage(invoices, service.id, question))
          },
        ),
        { numRuns: campaign(100, 5_000) },
      )
    })

    test('of a large customer accepts any number of words, including rare ones', async () => {
      const names = ['Oficina Norte', 'Padaria Sul', 'Talho Leste']
      const records = Array.from({ length: 3_000 }, (_, n) =>
        makeRecord({
          ...nobody,
          id: `in_${n}AbCdEf`,
          number: `OKE9VGHT-${n}`,
          display_name: names[n % names.length] as string,
          issued_at: new Date(Date.UTC(2025, 0, 1) + n * 3_600_000).toISOString(),
        }),
      )
      const service = await add(records)
      const totals = {
        'oke9 vght 9': 3_000,
        'oke9 vght in_ ght': 3_000,
        'oke9 vght padaria': 1_000,
        'oke9 vght padaria sul': 1_000,
        'oke9 vght padaria norte': 0,
        'oke9 vght xyz': 0,
        abcdef: 0,
        '2999abc': 1,
        in_2999AbC: 1,
      }
      for (const [q, total] of Object.entries(totals)) {
        const { json } = await service.list(`?q=${encodeURIComponent(q)}`)
        assert.equal(json.total, total, q)
      }
    })

    test('finds id and ix_id by their beginnings, and other fields by any part', async () => {
      const service = await add(
        ['OKE9VGHT-0012', 'OKE9VGHT-0003'].map((number, n) =>
          makeRecord({
            ...nobody,
            id: `in_${n}Ab0012cD-e`,
            number,
            ix_id: 7_001_200 + n,
            ix_sync_state: 'synced',
          }),
        ),
      )
      assert.deepEqual(await find(service, 'OKE9VGHT 0012'), ['in_0Ab0012cD-e'])
      for (const q of ['in_1ab', '1AB0012', 'in_1Ab0012cD-e', '1ab0012cde', '7001201', 'in_7001201'])
        assert.deepEqual(await find(service, q), ['in_1Ab0012cD-e'], q)
      for (const q of ['b0012', 'cd', '001201', '_1ab', 'n_1ab'])
        assert.deepEqual(await find(service, q), [], q)
      for (const q of ['i', 'in', 'in_', 'IN_ 7001', 'e9v'])
        assert.equal((await find(service, q)).length, 2, q)
    })

    test('finds texts that are too long for an index', async () => {
      const long = (first: string) => `${first} ${'ação '.repeat(900)}end of ${first}`
      const service = await add([
        makeRecord({ ...nobody, id: 'in_1', display_name: long('um'), customer_name: 'Rita' }),
        makeRecord({ ...nobody, id: 'in_2', display_name: long('dois') }),
        makeRecord({ ...nobody, id: 'in_3', display_name: 'um' }),
      ])
      assert.deepEqual(await find(service, 'um'), ['in_1', 'in_3'])
      assert.deepEqual(await find(service, 'acao endofdois'), ['in_2'])
      assert.deepEqual(await find(service, 'rita um acao'), ['in_1'])
      await service.save(makeRecord({ ...nobody, id: 'in_1', display_name: 'curto' }))
      assert.deepEqual(await find(service, 'um'), ['in_3'])
      assert.deepEqual(await find(service, 'curto'), ['in_1'])
    })

    test('finds an invoice by its changed texts', async () => {
      const service = await add([makeRecord({ id: 'in_1', number: 'old' })])
      await service.save(makeRecord({ id: 'in_1', number: 'new' }))
      assert.deepEqual(await find(service, 'old'), [])
      assert.deepEqual(await find(service, 'new'), ['in_1'])
    })
  })
}
