/** An hour of the demo, in the time that its steps take. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { changeEveryMs, startDemoSystems } from '../../src/cli/commands/demo-systems.ts'
import { startApi } from '../../src/cli/start/start-api.ts'
import { dayOf } from '../../src/domain/calendar.ts'
import { type Invoice, invoiceStatuses, syncStates } from '../../src/domain/invoice.ts'
import type { ListedInvoice } from '../../src/sdk/client.ts'
import { freshness } from '../../src/sources/stream-names.ts'
import { openOperatorStore } from '../../src/store/engines.ts'
import { stateOf } from '../../src/web/invoice-state.ts'
import { get } from '../support/clients/cli.ts'

test('an hour after its start, the demo’s first customer still has every kind of record', {
  timeout: 600_000,
}, async t => {
  const folder = await mkdtemp(join(tmpdir(), 'fatura-demo-hour-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const url = `sqlite:${join(folder, 'fatura.db')}`
  const log = pino({ level: 'silent' })
  const events: string[] = []
  const systems = await startDemoSystems(url, log, event => events.push(event))
  t.after(() => systems.stop())
  const { stripe, invoiceXpress, token } = systems
  const api = await startApi({
    url,
    host: '127.0.0.1',
    port: 0,
    rateLimit: null,
    web: false,
    log,
    stripe,
    invoiceXpress,
  })
  t.after(() => api.stop())
  const [{ customer_id = '', name = '' } = {}] = systems.customers

  const read = async () => {
    const path = `${api.address}/api/v1/client/${customer_id}`
    const list = await get(`${path}/invoices`, token)
    const { currencies } = (await get(`${path}/balance`, token)).json
    const { json } = await get(`${path}/summary`, token)
    return {
      invoices: list.json.invoices as Invoice[],
      total: list.json.total,
      owed: currencies[0],
      credited: json.currencies[0],
    }
  }
  const check = ({ invoices, owed }: Awaited<ReturnType<typeof read>>) => {
    assert.equal(invoices.filter(({ status }) => status === 'draft').length, 1, 'one draft')
    for (const { display_name } of invoices) assert.equal(display_name, name)
    assert.ok(owed.overdue_cents > 0 && owed.overdue_count === 1, 'one is overdue')
    assert.ok(owed.remaining_cents > owed.overdue_cents, 'something else is to pay')
    assert.equal(owed.credit_cents, 0)
  }

  const before = await read()
  check(before)
  const values = (field: 'status' | 'ix_sync_state') => new Set(before.invoices.map(each => each[field]))
  assert.deepEqual([...values('status')].sort(), [...invoiceStatuses].sort(), 'every status')
  assert.deepEqual([...values('ix_sync_state')].sort(), [...syncStates].sort(), 'every state of a document')
  const documents = await Promise.all(
    before.invoices
      .filter(({ ix_id }) => ix_id !== null)
      .map(({ id }) => get(`${api.address}/api/v1/client/${customer_id}/invoice/${id}/document`, token)),
  )
  const related = documents.flatMap(({ json }) => json.related ?? [])
  const types = related.map(({ type }) => type).sort()
  assert.deepEqual(types, ['CreditNote', 'CreditNote', 'Receipt'], 'one is credited in part, one whole')
  const { json } = await get(`${api.address}/api/v1/client/${customer_id}/invoices?expand=payment`, token)
  const states = (json.invoices as Required<ListedInvoice>[]).map(
    invoice => stateOf(invoice, dayOf(Date.now())).kind,
  )
  const kinds = ['credited', 'draft', 'overdue', 'paid', 'toPay', 'uncollectible', 'void']
  assert.deepEqual([...new Set(states)].sort(), kinds, 'every state of the page')

  const began = Date.now()
  const store = await openOperatorStore(url)
  t.after(() => store.close())
  /** The last successes that `Fatura-Synced-At` follows. */
  const readSuccesses = async () =>
    (await store.listStreams()).flatMap(({ name, succeeded_at }) => {
      const [, own = ''] = name.split(':')
      return new Map<string, string>(Object.entries(freshness)).get(own) === 'follows'
        ? [succeeded_at ?? 0]
        : []
    })
  for (let step = 1; step * changeEveryMs <= 3_600_000; step++) {
    systems.happen(began + step * changeEveryMs)
    if (step % 60 !== 0) continue
    const earlier = await readSuccesses()
    await systems.synchronize()
    const later = await readSuccesses()
    assert.ok(earlier.length > 0)
    assert.ok(
      earlier.every((success, index) => success < Number(later[index])),
      'what is told of its age moves',
    )
    check(await read())
  }
  const after = await read()
  assert.ok(after.total > before.total && after.total <= before.total + 3, `${after.total} invoices`)
  for (const kind of ['created', 'finalized', 'paid', 'updated'])
    assert.ok(events.includes(`webhook: invoice.${kind}, applied`), kind)
})
