/** What is owed and what was paid, as the store keeps it; and the invoices of a payment. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keyOf } from '../../src/domain/invoice.ts'
import { completePaymentFacts, type PaymentFacts } from '../../src/domain/payment.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { openStores } from '../support/worlds/sync.ts'

const open = { status: 'open', total_cents: 12_300 } as const
const facts = (given: Partial<PaymentFacts> = {}) => completePaymentFacts(open, given)
const paid = { id: 'pi_first', amount_cents: 5_000, paid_at: '2026-03-12T07:20:00.000Z' }
const toPay = { id: 'pi_open', amount_cents: 0, paid_at: null }

for (const engine of engines)
  describe(`payment facts on ${engine.name}`, () => {
    test('are stored as given, and derived from status and total when they are missing', async t => {
      const { store, reader } = await openStores(t, engine)
      const given = facts({
        ...{ due_date: '2026-04-01', amount_paid_cents: 5_000, starting_balance_cents: -300 },
        ...{ pre_payment_credit_cents: 100, post_payment_credit_cents: 200 },
        taxes: [{ rate_percent: null, base_cents: null, tax_cents: 2_300, reason: 'odd "reason"' }],
        payments: [paid, toPay],
      })
      const records = [
        { ...makeRecord({ id: 'in_given', ...open }), payment: given },
        makeRecord({ id: 'in_derived', ...open }),
        makeRecord({ id: 'in_paid', status: 'paid', total_cents: 100 }),
        makeRecord({ id: 'in_negative', status: 'open', total_cents: -100 }),
      ]
      await store.transaction(tx => tx.saveInvoices(records))
      const read = async (id: string) =>
        JSON.parse((await reader.findInvoice('cus_ana', id))?.payment ?? 'null') as PaymentFacts
      assert.deepEqual(await read('in_given'), given)
      assert.deepEqual(await read('in_derived'), facts())
      assert.equal((await read('in_paid')).amount_paid_cents, 100)
      assert.equal((await read('in_negative')).amount_remaining_cents, 0)
      const [walked] = await Array.fromAsync(store.walkInvoices({ customers: null, withLines: false }))
      assert.equal(walked?.filter(({ payment }) => JSON.parse(payment).payments.length === 2).length, 1)
      const known = await store.transaction(tx => tx.findKnown([{ customer_id: 'cus_ana', id: 'in_given' }]))
      assert.deepEqual(JSON.parse(known[0]?.payment ?? ''), given)
      assert.deepEqual(
        (await store.readLinked(null, 10, null)).find(({ id }) => id === 'in_given')?.payment,
        given,
      )
    })

    test('a partial payment changes the invoice, and the same facts again do not', async t => {
      const { store, reader } = await openStores(t, engine)
      const record = makeRecord({ id: 'in_1', ...open })
      const save = (payment: PaymentFacts) =>
        store.transaction(tx => tx.saveInvoices([{ ...record, payment }]))
      assert.equal(await save(facts({ payments: [toPay] })), 1)
      const before = (await reader.readSnapshot('cus_ana')).version
      assert.equal(await save(facts({ payments: [toPay] })), 0)
      assert.equal((await reader.readSnapshot('cus_ana')).version, before)
      assert.equal(await save(facts({ amount_paid_cents: 5_000, payments: [paid, toPay] })), 1)
      assert.ok((await reader.readSnapshot('cus_ana')).version > before)
    })

    test('invoices are found by a payment’s ID while they name the payment', async t => {
      const { store } = await openStores(t, engine)
      const record = (customer_id: string, id: string, ...payments: PaymentFacts['payments'][number][]) => {
        return { ...makeRecord({ customer_id, id, ...open }), payment: facts({ payments }) }
      }
      await store.transaction(tx =>
        tx.saveInvoices([
          record('cus_1', 'in_1', paid, toPay),
          record('cus_2', 'in_2', paid),
          record('cus_2', 'in_3'),
        ]),
      )
      const find = async (...ids: string[]) =>
        (await store.transaction(tx => tx.findLinked({ payments: ids }))).map(keyOf).sort()
      const both = ['cus_1 in_1', 'cus_2 in_2']
      assert.deepEqual(await find('pi_first', 'pi_none'), both)
      assert.deepEqual(await find('pi_open'), ['cus_1 in_1'])
      assert.deepEqual(await find(), [])
      await store.transaction(tx => tx.saveInvoices([record('cus_1', 'in_1', toPay)]))
      assert.deepEqual(await find('pi_first'), ['cus_2 in_2'])
      await store.transaction(tx => tx.deleteInvoice('cus_2', 'in_2'))
      assert.deepEqual(await find('pi_first'), [])
      // An invoice that is written without facts names no payment.
      await store.transaction(tx =>
        tx.saveInvoices([makeRecord({ customer_id: 'cus_1', id: 'in_1', ...open })]),
      )
      assert.deepEqual(await find('pi_open'), [])
    })
  })
