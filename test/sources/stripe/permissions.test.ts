/** A key that may not read everything: what it lacks is named, and nothing else is kept back. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Invoice } from '../../../src/domain/invoice.ts'
import type { PaymentFacts } from '../../../src/domain/payment.ts'
import { createBillingSource } from '../../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../../src/sources/stripe/map-claim.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import { assertTrue, eventsStream, readAll, startRig } from '../../support/worlds/sync.ts'

const [sqlite] = engines as [Engine]

describe('a Stripe key', { concurrency: 2 }, () => {
  it('without the permission for tax rates syncs all invoices, and an error names the permission until it is granted', async t => {
    const rig = await startRig(t, sqlite, { invoices: 60, lines: 1, seed: 9 })
    const { account, sandbox, store } = rig
    sandbox.forbidden.add('tax_rates')
    await rig.connector.backfill()
    account.change('create')
    await rig.connector.catchUp()
    const stored = (await readAll(store)).map(({ summary }) => JSON.parse(summary) as Invoice)
    assert.ok(stored.length > 40)
    for (const { id, tax_cents, tax_percent } of stored) {
      const { total_taxes, total_excluding_tax } = account.invoices.get(id) ?? assert.fail()
      const rate = account.taxRates.get(total_taxes[0]?.tax_rate_details.tax_rate ?? '')
      if (rate === undefined || tax_cents === 0 || (total_excluding_tax ?? 0) < 10_000) continue
      assert.ok(Math.abs((tax_percent ?? 0) - rate.percentage) < 0.01 || total_taxes.length > 1, id)
    }
    const asked = Number(sandbox.requests.get('retrieve_tax_rate'))
    assert.ok(asked <= account.taxRates.size, `asked for ${asked} times, and not with each invoice`)
    assert.match(
      String((await rig.stream(eventsStream))?.error),
      /^Stripe refused the key: it lacks the permission "Tax rates: Read"\. If a rate /,
    )
    sandbox.forbidden.clear()
    const source = createBillingSource({ apiKey: 'sk_test_sandbox', base: sandbox.address }, defaultKeys)
    const again = await rig.connect({ source })
    await again.relist(true)
    await again.catchUp()
    await assertTrue(account, store)
    assert.equal((await rig.stream(eventsStream))?.error, null)
    // Once known, a percentage does not become less exact.
    sandbox.forbidden.add('tax_rates')
    await (await rig.connect()).relist(true)
    await assertTrue(account, store)
  })

  it('without the permission for payments syncs all other facts, and the payments once it is granted', async t => {
    const rig = await startRig(t, sqlite, { invoices: 60, lines: 1, seed: 9 })
    const { account, sandbox, store, connector } = rig
    sandbox.forbidden.add('invoice_payments')
    await connector.backfill()
    account.change('pay')
    await connector.catchUp()
    const facts = (await readAll(store)).map(({ payment }) => JSON.parse(payment) as PaymentFacts)
    assert.ok(facts.some(({ amount_paid_cents }) => amount_paid_cents > 0))
    assert.ok(facts.every(({ payments }) => payments.length === 0))
    assert.equal(
      (await rig.stream(eventsStream))?.error,
      'Stripe refused the key to read the payments of invoices, so the payments of an invoice are not known',
    )
    sandbox.forbidden.clear()
    const source = createBillingSource({ apiKey: 'sk_test_sandbox', base: sandbox.address }, defaultKeys)
    const again = await rig.connect({ source })
    await again.relist(true)
    await again.catchUp()
    await assertTrue(account, store)
    assert.equal((await rig.stream(eventsStream))?.error, null)
  })

  it('without the permission for events or invoices is reported with the permission’s name', async t => {
    const { sandbox, connector } = await startRig(t, sqlite, { invoices: 5, lines: 1 })
    for (const [permission, name] of [
      ['events', 'Events'],
      ['invoices', 'Invoices'],
    ] as const) {
      sandbox.forbidden.add(permission)
      await assert.rejects(connector.backfill(), {
        message: `Stripe refused the key: it lacks the permission "${name}: Read"`,
      })
      sandbox.forbidden.clear()
    }
  })
})
