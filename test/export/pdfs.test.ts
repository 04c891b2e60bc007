/** `fatura export --pdfs`: both PDFs of each invoice, an index of them, and what happens when some do not come. */
import assert from 'node:assert/strict'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { parse } from 'csv-parse/sync'
import { createDocuments } from '../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../sandbox/invoicexpress/server.ts'
import { pdfFileName } from '../../src/export/export-pdfs.ts'
import { createSyncWorld, fillStore } from '../support/checks/sync-truth.ts'
import { eventually } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeInvoice } from '../support/worlds/records.ts'

const [sqlite] = engines as [Engine]
const key = 'ix_canaryKey_0123456789'

async function createWorld(t: TestContext) {
  const world = await createSyncWorld(t, { invoices: 20, seed: 3, days: 150 }, await sqlite.createStore(t))
  const ix = await startInvoiceXpressSandbox({ documents: createDocuments(world.account), apiKey: key })
  t.after(() => ix.close())
  const env = { ...world.env, INVOICEXPRESS_API_KEY: key, INVOICEXPRESS_API_BASE: ix.address }
  await fillStore(world, { account: null, apiKey: key, base: ix.address })
  const folder = join(world.cli.folder, 'pdfs')
  return {
    folder,
    stripe: world.sandbox,
    ix,
    run: (...args: string[]) => world.cli.run(['export', '--pdfs', folder, ...args], { env }),
    start: (...args: string[]) => world.cli.start(['export', '--pdfs', folder, ...args], { env }),
    files: async () => (await readdir(folder)).filter(name => name !== 'index.csv').sort(),
    async index(delimiter = ',') {
      const text = await readFile(join(folder, 'index.csv'), 'utf8')
      return parse(text, { columns: true, bom: true, delimiter }) as Record<string, string>[]
    },
  }
}

// Both wait for the pace at which an invoicing system may be asked.
describe('fatura export --pdfs', { concurrency: 2 }, () => {
  it('fetches missing PDFs, keeps existing ones, and fetches failed ones at the next run', async t => {
    const { folder, run, files, index, ix } = await createWorld(t)
    const first = await run()
    assert.equal(first.code, 0, first.stderr)
    assert.equal(first.stdout, '')
    const rows = await index()
    const saved = rows.filter(({ outcome }) => outcome === 'saved')
    assert.ok(saved.some(({ kind }) => kind === 'ix') && saved.some(({ kind }) => kind === 'payments'))
    assert.ok(rows.some(({ outcome }) => outcome === 'none'))
    assert.equal(rows.length % 2, 0, 'two rows an invoice')
    for (const { outcome, kind, status, ix_id, ix_status, file, detail } of rows) {
      const isDraft = kind === 'payments' ? status === 'draft' : ix_status === 'draft'
      const isMissing = isDraft || (kind === 'ix' && ix_id === '')
      assert.deepEqual(
        [outcome, file === '', detail === ''],
        isMissing ? ['none', true, false] : ['saved', false, true],
      )
    }
    assert.deepEqual(await files(), saved.map(({ file }) => file).sort())
    for (const { file = '' } of saved) {
      const bytes = await readFile(join(folder, file), 'latin1')
      assert.ok(bytes.startsWith('%PDF-') && bytes.includes('%%EOF'), file)
    }

    const lost = saved.find(({ kind }) => kind === 'ix')?.file ?? ''
    await rm(join(folder, lost))
    ix.faults.set('ix_pdf', 'not_found')
    const failed = await run()
    assert.equal(failed.code, 1)
    assert.match(
      failed.stderr,
      /^Failed: the ix PDF of \S+ in_\w+: .+\nPDFs in .+ 0 saved, \d+ already there, .+ 1 failed;.+\nfatura: 1 PDF failed\. Run the same command again/,
    )
    const [failure, ...others] = (await index()).filter(({ outcome }) => outcome === 'failed')
    assert.deepEqual([failure?.kind, failure?.file, others.length], ['ix', '', 0])
    assert.ok(failure?.detail)

    // Asked to wait, and then given.
    ix.faults.set('ix_pdf', 'too_many', { times: 1, retryAfter: '1' })
    const again = await run('--format', 'csv-pt')
    assert.equal(again.code, 0, again.stderr)
    const outcomes = (await index(';')).map(({ outcome }) => outcome)
    assert.equal(outcomes.filter(outcome => outcome === 'saved').length, 1)
    assert.equal(outcomes.filter(outcome => outcome === 'kept').length, saved.length - 1)
    assert.ok((await files()).includes(lost))
  })

  it('leaves only whole PDFs and a correct index after a signal', async t => {
    const { folder, start, files, stripe, run } = await createWorld(t)
    stripe.faults.set('pdf', 'hang')
    const program = start()
    await eventually('documents are there, and the others are waited for', async () =>
      (await readdir(folder).catch(() => [])).some(name => name.endsWith('_ix.pdf')),
    )
    const { code } = await program.stop('SIGINT')
    assert.equal(code, 130, program.stderr)
    const left = await readdir(folder)
    assert.ok(left.length > 0)
    for (const name of left) {
      assert.match(name, /_ix\.pdf$/)
      assert.ok((await readFile(join(folder, name), 'latin1')).includes('%%EOF'), name)
    }
    stripe.faults.clear()
    const { code: last, stderr } = await run('--kind', 'ix')
    assert.equal(last, 0, stderr)
    assert.match(stderr, new RegExp(`${left.length} already there`))
    for (const name of await files()) assert.match(name, /_ix\.pdf$/)
  })
})

describe('the name of a PDF file', () => {
  const cases: [number: string | null, id: string, name: string][] = [
    ['OKE9VGHT-0013', 'in_1', '2026-03-02_OKE9VGHT-0013_in_1_ix.pdf'],
    ['FT 2026/12', 'in_2', '2026-03-02_FT 2026-12_in_2_ix.pdf'],
    ['../../etc/passwd', 'in_3', '2026-03-02_etc-passwd_in_3_ix.pdf'],
    ['a\r\nb\u202ec\0', 'in_4', '2026-03-02_a-b-c_in_4_ix.pdf'],
    ['...', 'in_5', '2026-03-02_in_5_ix.pdf'],
    [null, 'in_6', '2026-03-02_in_6_ix.pdf'],
  ]
  for (const [number, id, name] of cases)
    it(`is ${name} for the number ${JSON.stringify(number)}`, () => {
      assert.equal(pdfFileName(makeInvoice({ number, id }), 'ix'), name)
    })

  it('is short enough for every file system, for any number and ID', () => {
    const long = makeInvoice({ number: '€'.repeat(500), id: `in_${'x'.repeat(252)}` })
    const name = pdfFileName(long, 'payments')
    assert.ok(Buffer.byteLength(name) <= 200, name)
    assert.notEqual(name, pdfFileName({ ...long, id: `${long.id}y` }, 'payments'))
  })
})
