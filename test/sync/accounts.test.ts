/** A store follows one account: another one's key is refused before anything is written, and a change is a command. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { createDocuments } from '../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../sandbox/invoicexpress/server.ts'
import { type SandboxOptions, type StripeSandbox, startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { examineHere } from '../support/checks/examine.ts'
import {
  apiKey,
  createSyncWorld,
  fillStore,
  readStatus,
  readStored,
  type SyncWorld,
  truthOf,
} from '../support/checks/sync-truth.ts'
import { assertOneLine, unwrapped } from '../support/clients/cli.ts'
import { engines, runSql } from '../support/databases/engines.ts'

const once = ['sync', '--once']

/** A second account, and what leads to it. */
async function openOther(t: TestContext, options: SandboxOptions = {}) {
  const other = await startStripeSandbox({
    ...{
      invoices: 40,
      lines: 1,
      seed: 52,
      accountId: 'acct_1Other',
      apiKey,
      now: Math.floor(Date.now() / 1000),
    },
    ...options,
  })
  t.after(() => other.close())
  const key = options.apiKey ?? apiKey
  return { other, key, env: { STRIPE_API_BASE: other.address, STRIPE_API_KEY: key } }
}

/** As a store was before accounts were bound. */
async function forgetPins(url: string): Promise<void> {
  if (!url.startsWith('sqlite:')) await runSql(url, 'DELETE FROM fatura.bound_accounts')
  else {
    const db = new DatabaseSync(url.slice('sqlite:'.length))
    db.exec('DELETE FROM bound_accounts')
    db.close()
  }
}

/** As `sync --once` refuses it, within this process: that it ends with this one line is seen by a start in each test. */
function assertRefused(
  { url }: SyncWorld,
  { other, key = apiKey }: { other: StripeSandbox; key?: string },
  words: RegExp,
): Promise<void> {
  return assert.rejects(fillStore({ url, sandbox: other, key }), words)
}

async function linesOf(world: SyncWorld, kind: string): Promise<Record<string, unknown>[]> {
  const { stdout } = await world.run(['status', '--json'])
  const lines = stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
  return lines.filter(line => line.kind === kind)
}

describe('the account that a store is bound to', { concurrency: 3 }, () => {
  for (const engine of engines) {
    it(`is the only one accepted: another account or mode is refused and changes nothing, on ${engine.name}`, async t => {
      const world = await createSyncWorld(
        t,
        { invoices: 40, lines: 1, seed: 51 },
        await engine.createStore(t),
      )
      await fillStore(world)
      const [bound] = (await readStatus(world.url)).accounts
      assert.deepEqual([bound?.system, bound?.account], ['stripe', 'acct_1SandboxFatura test'])
      const before = await readStored(world.url)
      const { other, env } = await openOther(t)
      const live = await openOther(t, { apiKey: 'sk_live_canaryKey0' })
      const same = await openOther(t, {
        accountId: 'acct_1SandboxFatura',
        apiKey: 'sk_live_canaryKey1',
      })
      assertOneLine(
        await world.run(once, { env }),
        /holds records of the Stripe account acct_1SandboxFatura, test mode, but STRIPE_API_KEY leads to the Stripe account acct_1Other, test mode\. .*fatura account change/,
      )
      await assertRefused(world, live, /leads to the Stripe account acct_1Other, live mode/)
      await assertRefused(world, same, /leads to the Stripe account acct_1SandboxFatura, live mode/)
      const up = await world.run(['up', '--port', '0'], { env })
      assert.equal(up.code, 1)
      assert.match(up.stderr, /^fatura: This store holds records of [^\n]+\n$/)
      assert.deepEqual(await readStored(world.url), before)
      assert.ok(!other.requests.has('list_invoices'), 'not even read')

      const { stdout } = await world.run(['doctor', '--sample', '0'], { env })
      assert.match(
        unwrapped(stdout),
        /^FAIL +Account of stripe +the settings lead to the Stripe account acct_1Other, test mode/m,
      )
      const well = await examineHere({ ...world.env, DATABASE_URL: world.url })
      const { result, detail } = well.find(({ check }) => check === 'Account of stripe') ?? assert.fail()
      assert.match(`${result} ${detail}`, /^ok the Stripe account acct_1SandboxFatura, test mode/)
      await fillStore(world)
    })

    it(`is recognized by its invoices when the key may not read the account’s name, on ${engine.name}`, async t => {
      const forbidden = ['account'] as const
      const world = await createSyncWorld(
        t,
        { invoices: 40, lines: 1, seed: 51, forbidden },
        await engine.createStore(t),
      )
      await fillStore(world)
      assert.equal((await readStatus(world.url)).accounts[0]?.account, '? test')
      await fillStore(world)
      const before = await readStored(world.url)
      const nameless = await openOther(t, { forbidden })
      const named = await openOther(t)
      assertOneLine(
        await world.run(once, { env: nameless.env }),
        /may not name, test mode.*finds none of them/,
      )
      await assertRefused(world, named, /leads to the Stripe account acct_1Other/)
      assert.deepEqual((await readStored(world.url)).records, before.records)

      world.sandbox.forbidden.clear()
      await fillStore(world)
      assert.equal(
        (await readStatus(world.url)).accounts[0]?.account,
        'acct_1SandboxFatura test',
        'named since',
      )
      world.sandbox.forbidden.add('account')
      await fillStore(world)
      assert.equal((await readStatus(world.url)).accounts[0]?.account, 'acct_1SandboxFatura test')
      await assertRefused(world, nameless, /acct_1SandboxFatura.*STRIPE_API_KEY/)

      await forgetPins(world.url)
      assertOneLine(await world.run(once, { env: named.env }), /holds invoices that this key does not find/)
      assert.deepEqual((await readStored(world.url)).records, before.records)
    })

    it(`changes only by fatura account change --confirm, which explains the effect, on ${engine.name}`, async t => {
      const world = await createSyncWorld(
        t,
        { invoices: 40, lines: 1, seed: 51 },
        await engine.createStore(t),
      )
      await fillStore(world)
      const { other, env } = await openOther(t)
      const change = ['account', 'change']
      assert.match((await world.run(change)).stdout, /Nothing to change/)
      const asked = await world.run(change, { env })
      assert.equal(asked.code, 1)
      assert.match(asked.stdout, /All invoices of the new account are read.*old account stay.*DATABASE_URL/s)
      assert.match(asked.stderr, /^fatura: Nothing was changed\. .*--confirm\.\n$/)
      await assertRefused(world, { other }, /STRIPE_API_KEY leads to the Stripe account acct_1Other/)

      const running = await world.receive()
      const refused = await world.run([...change, '--confirm'], { env })
      assert.match(refused.stderr, /already synchronized by process/)
      await running.stop()
      const changed = await world.run([...change, '--confirm'], { env })
      assert.equal(changed.code, 0, changed.stderr)
      assert.match((await world.run(['account', 'show'])).stdout, /^stripe +acct_1Other test +\d{4}-/m)
      await fillStore({ url: world.url, sandbox: other })
      const { records } = await readStored(world.url)
      for (const [id, record] of truthOf(other.account)) assert.deepEqual(records.get(id), record)
      for (const [id, record] of truthOf(world.account))
        if (record.invoice.status !== 'draft') assert.deepEqual(records.get(id), record, 'the old one stays')
      // The old account is another one by now.
      await assertRefused(
        world,
        { other: world.sandbox },
        /STRIPE_API_KEY leads to the Stripe account acct_1SandboxFatura/,
      )
    })
  }

  it('is recorded for InvoiceXpress as well', async t => {
    const world = await createSyncWorld(t, { invoices: 30, lines: 1, seed: 51 })
    const ix = await startInvoiceXpressSandbox({ documents: createDocuments(world.account), apiKey: 'ixKey' })
    t.after(() => ix.close())
    const settings = { INVOICEXPRESS_API_KEY: 'ixKey', INVOICEXPRESS_API_BASE: ix.address }
    await fillStore(world)
    await fillStore(world, { account: 'ana', apiKey: 'ixKey', base: ix.address })
    const accounts = await linesOf(world, 'account')
    assert.deepEqual(
      accounts.map(({ system, account }) => [system, account]),
      [
        ['invoicexpress', 'ana'],
        ['stripe', 'acct_1SandboxFatura test'],
      ],
    )
    assertOneLine(
      await world.run(once, { env: { ...settings, INVOICEXPRESS_ACCOUNT: 'rui' } }),
      /the InvoiceXpress account ana, but INVOICEXPRESS_ACCOUNT leads to the InvoiceXpress account rui/,
    )
    await fillStore(world)
  })
})
