/** The connector in `fatura status` and `fatura doctor`, besides its progress. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openWriteStore } from '../../src/store/engines.ts'
import { assertFits, createCli, unwrapped } from '../support/clients/cli.ts'
import { engines } from '../support/databases/engines.ts'

for (const engine of engines)
  describe(`fatura status on ${engine.name}`, () => {
    it('shows durations in words, accounts, the connector’s process and set-aside records', async t => {
      const url = await engine.createStore(t)
      const store = await openWriteStore(url)
      t.after(() => store.close())
      const now = Date.now()
      await store.transaction(async tx => {
        const stream = { name: 'stripe:events', cursor: '7', failed_at: null, error: null }
        await tx.saveStream({ ...stream, succeeded_at: now - 1_441_000 })
        await tx.saveBoundAccount({ system: 'stripe', account: 'acct_1 live', bound_at: now })
        for (let i = 0; i < 7; i++)
          await tx.setAside(
            { system: 'stripe', kind: 'invoice', id: `in_${i}`, reason: 'no total\n', due_at: now + 250_000 },
            now - 600_000 + i,
          )
        await tx.setAside(
          { system: 'invoicexpress', kind: 'document', id: '9', reason: 'no id', due_at: null },
          now - 500_000,
        )
        await tx.addRecheck({ system: 'stripe', checked: 12_000, corrected: 0 }, now - 5 * 3_600_000)
        await tx.addRecheck({ system: 'invoicexpress', checked: 300, corrected: 5 }, now)
        await tx.addRecheck({ system: 'stripe', checked: 0, corrected: 2 }, now)
      })
      await store.takeLease(await store.readLease(), 'process 4711 on web-1')
      const cli = await createCli(t)
      const env = { DATABASE_URL: url }
      const { stdout: shown } = await cli.run(['status'], { env })
      assertFits(shown)
      const stdout = unwrapped(shown)
      assert.match(stdout, /^stripe:events +\S+ +24 min +7$/m)
      assert.match(stdout, /^Account of stripe: +acct_1 live, since \d{4}-\S+Z$/m)
      assert.match(stdout, /^Synchronizing: +process 4711 on web-1$/m)
      assert.match(
        stdout,
        /^Documents listed again: +5 of 300 in 24 h had changed and were found only by reading all again$/m,
      )
      assert.match(stdout, /^Invoices listed again: +2 of 12000 in 24 h had changed without an event$/m)
      assert.match(shown, /^Set aside and asked for again: 8\.$/m)
      assert.match(
        stdout,
        /1 document of InvoiceXpress could not be read\. Next try within 5 min\. The newest is 9: no id \(1 try, 8 min ago\)/,
      )
      assert.match(
        stdout,
        /7 invoices of Stripe could not be read\. Next try in 4 min\. The newest is in_6: no total {1,2}\(1 try, 10 min ago\)/,
      )
      assert.doesNotMatch(stdout, /in_1|deletion guard/)

      const lines = (await cli.run(['status', '--json'], { env })).stdout.trimEnd().split('\n')
      const kinds = Map.groupBy(
        lines.map(line => JSON.parse(line)),
        ({ kind }) => kind,
      )
      assert.deepEqual(
        [...kinds].map(([kind, all]) => [kind, all.length]),
        [
          ['stream', 1],
          ['account', 1],
          ['connector', 1],
          ['recheck', 2],
          ['set_aside_total', 1],
          ['set_aside', 5],
        ],
      )
      const [newest] = kinds.get('set_aside') ?? []
      const { record, id, reason, tries } = newest
      assert.deepEqual([record, id, reason, tries], ['document', '9', 'no id', 1])

      const doctor = await cli.run(['doctor', '--sample', '0'], { env })
      assertFits(doctor.stdout)
      assert.match(doctor.stdout, /^ok +Connector +process 4711 on web-1 synchronizes this store$/m)
      assert.match(
        unwrapped(doctor.stdout),
        /^warn +Set aside +8 records could not be read and are set aside\. The newest is invoicexpress document 9: no id → /m,
      )
    })
  })
