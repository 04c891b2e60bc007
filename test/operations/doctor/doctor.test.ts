/** `fatura doctor` against the two sandboxes: each thing that can be wrong has a line that says what to do. */
import assert from 'node:assert/strict'
import { chmod, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { createDocuments, type DocumentAccount } from '../../../sandbox/invoicexpress/account.ts'
import {
  type InvoiceXpressSandbox,
  type InvoiceXpressOptions as IxSandboxOptions,
  startInvoiceXpressSandbox,
} from '../../../sandbox/invoicexpress/server.ts'
import type { SandboxOptions } from '../../../sandbox/stripe/server.ts'
import { documentTypes } from '../../../src/domain/document.ts'
import { defaultRules } from '../../../src/domain/link/link.ts'
import { checkClock } from '../../../src/operations/doctor/check-clock.ts'
import { quickPace } from '../../../src/operations/doctor/check-invoicexpress.ts'
import { createReport, type Finding } from '../../../src/operations/doctor/findings.ts'
import { checkSample, type Wanted } from '../../../src/operations/doctor/run-checks.ts'
import type { Pace } from '../../../src/sources/calls/paced-calls.ts'
import { createDocumentSource } from '../../../src/sources/invoicexpress/document-source.ts'
import { createBillingSource } from '../../../src/sources/stripe/billing-source.ts'
import { neededEvents } from '../../../src/sources/stripe/events.ts'
import { defaultKeys } from '../../../src/sources/stripe/map-claim.ts'
import { openOperatorStore, openWriteStore, prepareStore } from '../../../src/store/engines.ts'
import { schema } from '../../../src/store/sqlite/migrations.ts'
import { examineHere } from '../../support/checks/examine.ts'
import {
  apiKey,
  assertClean,
  createSyncWorld,
  fillStore,
  type SyncWorld,
} from '../../support/checks/sync-truth.ts'
import { assertFits, type Outcome, unwrapped } from '../../support/clients/cli.ts'
import { createDatabase, engines, postgresServer, runSql } from '../../support/databases/engines.ts'
import { changeRows } from '../../support/databases/store-rows.ts'
import { makeInvoice } from '../../support/worlds/records.ts'
import { stopClock, until } from '../../support/worlds/stopped-clock.ts'
import { stopRequestTimeouts } from '../../support/worlds/stopped-sockets.ts'
import { openStores } from '../../support/worlds/sync.ts'

const ixKey = 'canaryKeyOfInvoicexpress'

interface Clinic extends SyncWorld {
  ix: InvoiceXpressSandbox
  documents: DocumentAccount
  /** By so many seconds the clock of both systems is ahead of ours. */
  setSkew(seconds: number): void
  /** Everything of both systems into the store. */
  sync(): Promise<void>
  /** As if that had just been done again: on a busy machine, what was done some tests ago is stale. */
  renew(): Promise<void>
  examine(args?: readonly string[], env?: Record<string, string>): Promise<Outcome & Examined>
  /** The same within this process, and without a sample unless told: each test starts the program for what it is about. */
  look(env?: Record<string, string>, wanted?: Partial<Wanted>): Promise<Examined>
  /** The findings of the sample alone, without the pace that spares a real InvoiceXpress. */
  sample(count: number, pace?: Partial<Pace>): Promise<Finding[]>
}

interface Examined {
  findings: Finding[]
  /** Findings that are not ok, by their check. */
  wrong: Record<string, Finding>
}

function sortOut(findings: Finding[]): Examined {
  for (const finding of findings) {
    assert.deepEqual(Object.keys(finding), ['result', 'check', 'detail', 'next'])
    if (finding.result === 'warn' || finding.result === 'FAIL') assert.ok(finding.next, finding.check)
  }
  // The sandbox has payers without a customer: test/sync/refused.test.ts is about their invoices.
  const unexpected = findings.filter(({ result, check }) => result !== 'ok' && check !== 'Refused')
  const wrong = unexpected.map(finding => [finding.check, finding])
  return { findings, wrong: Object.fromEntries(wrong) }
}

type Options = SandboxOptions & { ix?: Partial<IxSandboxOptions>; url?: string }

async function open(t: TestContext, { ix: server, url, ...options }: Options = {}): Promise<Clinic> {
  const world = await createSyncWorld(t, { invoices: 60, seed: 21, days: 150, ...options }, url)
  const documents = createDocuments(world.account)
  const ix = await startInvoiceXpressSandbox({ documents, apiKey: ixKey, ...server })
  // The sandbox's clock stands still: here it goes with ours.
  let skew = 0
  const setClock = () => {
    world.account.clock = Math.floor(Date.now() / 1000) + skew
  }
  const clock = setInterval(setClock, 100)
  t.after(async () => {
    clearInterval(clock)
    await ix.close()
  })
  world.sandbox.subscribe('http://127.0.0.1:9/', 'whsec_canarySecret')
  const connected = { INVOICEXPRESS_API_KEY: ixKey, INVOICEXPRESS_API_BASE: ix.address, LOG_LEVEL: 'error' }
  return {
    ...world,
    ix,
    documents,
    setSkew(seconds) {
      skew = seconds
      setClock()
    },
    sync: () => fillStore(world, { account: null, apiKey: ixKey, base: ix.address }),
    async renew() {
      const store = await openWriteStore(world.url)
      const streams = await store.listStreams()
      await store.transaction(async tx => {
        for (const { name } of streams) await tx.saveSuccess(name, Date.now())
      })
      await store.close()
    },
    async examine(args = [], env = {}) {
      const outcome = await world.run(['doctor', '--json', ...args], { env: { ...connected, ...env } })
      assert.equal(outcome.stderr, '')
      const findings: Finding[] = outcome.stdout
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
      assert.equal(outcome.code, findings.some(({ result }) => result === 'FAIL') ? 1 : 0)
      return { ...outcome, ...sortOut(findings) }
    },
    async look(env = {}, wanted = {}) {
      const findings = await examineHere(
        { ...world.env, DATABASE_URL: world.url, ...connected, ...env },
        wanted,
      )
      assertClean(JSON.stringify(findings), world.account)
      return sortOut(findings)
    },
    async sample(count, pace = {}) {
      const quick = { ...quickPace, perSecond: 1_000, ...pace }
      const findings: Finding[] = []
      const report = createReport(
        () => {},
        finding => findings.push(finding),
      )
      const store = await openOperatorStore(world.url)
      try {
        await checkSample(report, {
          store,
          payments: createBillingSource({ apiKey, base: world.sandbox.address }, defaultKeys, quick),
          documents: createDocumentSource({ account: null, apiKey: ixKey, base: ix.address }, quick),
          rules: defaultRules,
          count,
        })
      } finally {
        await store.close()
      }
      assertClean(JSON.stringify(findings), world.account)
      return findings
    },
  }
}

const resultsOf = (wrong: Record<string, Finding>) =>
  Object.fromEntries(Object.entries(wrong).map(([check, { result }]) => [check, result]))

// On a clock that stands still, what is never over hangs.
describe('fatura doctor with a stopped clock', { timeout: 600_000 }, () => {
  /** Looks on a clock that stands still, within this process. */
  async function lookStill(t: TestContext, clinic: Clinic, wanted?: Partial<Wanted>) {
    const clock = stopClock(t)
    stopRequestTimeouts(t)
    const looking = { clock, isOver: false, examined: clinic.look({}, wanted) }
    const end = () => {
      looking.isOver = true
    }
    looking.examined.then(end, end)
    return looking
  }

  function assertLate(findings: readonly Finding[], ...checks: readonly RegExp[]): void {
    for (const check of checks) {
      const [finding, ...others] = findings.filter(finding => check.test(finding.check))
      assert.deepEqual([finding?.result, others], ['FAIL', []])
      assert.match(finding?.detail ?? '', /did not answer in time/)
    }
  }

  it('waits five seconds for each of two systems that hang', async t => {
    const clinic = await open(t, { invoices: 8 })
    await clinic.sync()
    const { sandbox, ix } = clinic
    sandbox.faults.set('*', 'hang')
    ix.faults.set('*', 'hang')
    sandbox.requests.clear()
    ix.requests.clear()
    const looking = await lookStill(t, clinic)
    for (const { requests } of [sandbox, ix]) {
      await until(() => looking.isOver || requests.size > 0)
      await looking.clock.pass(4_999)
      assert.equal(looking.isOver || (requests === sandbox.requests && ix.requests.size > 0), false)
      await looking.clock.pass(1)
    }
    assertLate((await looking.examined).findings, /^Stripe: key$/, /^InvoiceXpress: key$/)
  })

  it('gives up a sampled invoice after two requests of five seconds without an answer', async t => {
    const clinic = await open(t, { invoices: 8 })
    await clinic.sync()
    const { sandbox } = clinic
    sandbox.faults.set('retrieve_invoice', 'hang')
    sandbox.requests.clear()
    const looking = await lookStill(t, clinic, { sample: 1 })
    const asked = () => sandbox.requests.get('retrieve_invoice') ?? 0
    // Whatever is looked at before has its pace, and between the two is a pause: there time passes in steps, far below any limit.
    while (!looking.isOver && asked() < 1) await looking.clock.pass(10)
    await looking.clock.pass(4_500)
    assert.deepEqual([looking.isOver, asked()], [false, 1])
    while (!looking.isOver && asked() < 2) await looking.clock.pass(10)
    await looking.clock.pass(4_500)
    assert.deepEqual([looking.isOver, asked()], [false, 2])
    await looking.clock.pass(500)
    assertLate((await looking.examined).findings, /^Sample: in_/)
    assert.equal(asked(), 2)
  })

  it('finds no difference in the sample, whatever state the documents have', async t => {
    const clinic = await open(t, { invoices: 120, seed: 22 })
    await clinic.sync()
    const clock = stopClock(t)
    stopRequestTimeouts(t)
    let isOver = false
    const sampling = clinic.sample(100).finally(() => {
      isOver = true
    })
    // The pace of calls needs time; the limits of answers are far away.
    await until(async () => {
      await clock.pass(0.2)
      return isOver
    })
    assert.deepEqual(await sampling, [
      {
        result: 'ok',
        check: 'Sample',
        detail: '100 of 100 sampled invoices compared with both systems: no difference',
        next: null,
      },
    ])
  })

  it('accepts the simulated clock of a sandbox', async t => {
    const clinic = await open(t, { invoices: 8 })
    await clinic.sync()
    // A clock that tells whole seconds is taken to be half a second further.
    t.mock.timers.enable({ apis: ['Date'], now: Math.floor(Date.now() / 1_000) * 1_000 + 500 })
    for (const [skew, told] of [
      [60, 'the clock of a sandbox is simulated; the clock of this machine is 60 s behind it'],
      [-18 * 86_400, 'the clock of a sandbox is simulated; the clock of this machine is 18 days ahead of it'],
    ] as const) {
      clinic.setSkew(skew)
      const { wrong } = await clinic.look()
      assert.deepEqual(resultsOf(wrong), {
        ...{ 'Clock: Stripe': 'skip', 'Clock: InvoiceXpress': 'skip', Sample: 'skip' },
      })
      assert.equal(wrong['Clock: Stripe']?.detail, told)
    }
  })
})

describe('fatura doctor', { concurrency: 4 }, () => {
  it('with a synced store', async t => {
    const clinic = await open(t)
    await clinic.sync()

    await t.test('finds no problem, and reports each check in a line', async () => {
      const { wrong, code } = await clinic.examine(['--sample', '2'])
      assert.deepEqual([resultsOf(wrong), code], [{}, 0])

      const env = { INVOICEXPRESS_API_KEY: ixKey, INVOICEXPRESS_API_BASE: clinic.ix.address }
      const { stdout } = await clinic.run(['doctor'], { env })
      for (const line of [
        /^ok {4}Settings +well-formed: .*STRIPE_API_KEY/m,
        /^ok {4}Stripe +connected, at a sandbox$/m,
        /^ok {4}Database: schema +version \d+$/m,
        /^ok {4}Stream ix:recent +last success \d+ s ago$/m,
        /^ok {4}Stripe: key +secret key, test mode, accepted$/m,
        /^ok {4}Stripe: read Tax rates +allowed$/m,
        /^ok {4}Stripe: webhook endpoint +an endpoint is enabled/m,
        /^ok {4}InvoiceXpress: PDF origin +http:\/\/127\.0\.0\.1:\d+ is allowed$/m,
        /^ok {4}Clock: InvoiceXpress +/m,
        /^ok {4}Sample +10 of 10 sampled invoices compared with both systems: no difference$/m,
        /^warn {2}Refused +invoices are refused and not stored: 5: no customer \((in_\w+, ){2}in_\w+ and others\) → /m,
        /\n\n\d+ ok, 1 warn, 0 FAIL, 0 skip\.\n$/,
      ])
        assert.match(unwrapped(stdout), line)
      assertFits(stdout)
      assert.doesNotMatch(stdout, /\.pdf/)
    })

    await t.test('reports each wrong setting, and continues with the other checks', async () => {
      await clinic.renew()
      const { wrong } = await clinic.examine([], {
        PORT: 'x',
        RATE_LIMIT: '5',
        LOG_LEVEL: 'loud',
        DATABASE_READ_URL: 'mysql://x',
        STRIPE_WEBHOOK_SECRET: 'canarySecret',
        INVOICEXPRESS_ACCOUNT: 'Canary.Key',
        INVOICEXPRESS_PDF_ORIGINS: 'nonsense',
        DOCUMENT_REFERENCE: 'none',
        LINK_IGNORE_ZERO: 'maybe',
        LINK_CREATING_TIMEOUT: '1',
      })
      const settings = Object.keys(wrong).filter(check => check.startsWith('Setting '))
      assert.deepEqual(settings.sort(), [
        'Setting DATABASE_READ_URL',
        'Setting DOCUMENT_REFERENCE',
        'Setting INVOICEXPRESS_ACCOUNT',
        'Setting INVOICEXPRESS_PDF_ORIGINS',
        'Setting LINK_CREATING_TIMEOUT',
        'Setting LINK_IGNORE_ZERO',
        'Setting LOG_LEVEL',
        'Setting PORT',
        'Setting RATE_LIMIT',
        'Setting STRIPE_WEBHOOK_SECRET',
      ])
      assert.match(
        wrong['Setting RATE_LIMIT']?.detail ?? '',
        /RATE_LIMIT must be off, or a number of requests/,
      )
      assert.equal(wrong['Stripe: key'], undefined)
      assert.equal(wrong.Sample?.result, 'FAIL')
    })

    await t.test('requests documents only of the connector’s types', async () => {
      const asked: string[][] = []
      const proxy = createServer(async (request, response) => {
        const url = new URL(request.url ?? '', clinic.ix.address)
        if (url.pathname === '/invoices.json') asked.push(url.searchParams.getAll('type[]'))
        const answer = await fetch(url)
        const body = Buffer.from(await answer.arrayBuffer())
        response
          .writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
          .end(body)
      })
      await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
      t.after(() => {
        proxy.close()
        proxy.closeAllConnections()
      })
      await clinic.look({
        INVOICEXPRESS_API_BASE: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      })
      assert.ok(asked.length > 1)
      for (const types of asked) assert.deepEqual(types, documentTypes)
    })

    await t.test('reports a wrong key of either system', async () => {
      await clinic.renew()
      const stripe = await clinic.examine([], { STRIPE_API_KEY: 'rk_test_canaryKeyOther' })
      assert.deepEqual(resultsOf(stripe.wrong), { 'Stripe: key': 'FAIL', Sample: 'skip' })
      assert.match(stripe.wrong['Stripe: key']?.detail ?? '', /restricted key, test mode/)
      const ix = await clinic.look({ INVOICEXPRESS_API_KEY: 'canaryKeyOther' }, { sample: 2 })
      assert.deepEqual(resultsOf(ix.wrong), { 'InvoiceXpress: key': 'FAIL', 'Sample: documents': 'skip' })
      assert.match(ix.findings.at(-1)?.detail ?? '', /only Stripe: no difference/)
    })

    await t.test('names the setting to check when a system is unreachable', async () => {
      const base = 'http://127.0.0.1:1'
      const { wrong } = await clinic.look({ STRIPE_API_BASE: base, INVOICEXPRESS_API_BASE: base })
      for (const [system, setting] of [
        ['Stripe', 'STRIPE_API_BASE'],
        ['InvoiceXpress', 'INVOICEXPRESS_API_BASE'],
      ])
        assert.equal(
          wrong[`${system}: key`]?.detail,
          `${system} could not be reached at ${base} (ECONNREFUSED). Check the network and ${setting}`,
        )
    })

    await t.test('names each permission that the key lacks', async () => {
      await clinic.renew()
      for (const [permission, name] of [
        ['invoices', 'Invoices'],
        ['customers', 'Customers'],
        ['events', 'Events'],
        ['tax_rates', 'Tax rates'],
      ] as const) {
        clinic.sandbox.forbidden.add(permission)
        const { wrong } = await (permission === 'invoices'
          ? clinic.examine(['--sample', '0'])
          : clinic.look())
        assert.deepEqual(resultsOf(wrong), { [`Stripe: read ${name}`]: 'FAIL', Sample: 'skip' })
        assert.ok(wrong[`Stripe: read ${name}`]?.next?.includes(`"${name}: Read"`))
        clinic.sandbox.forbidden.clear()
      }
      for (const [permission, check, result] of [
        ['webhook_endpoints', 'Stripe: webhook endpoint', 'skip'],
        ['invoice_payments', 'Stripe: read payments of invoices', 'warn'],
      ] as const) {
        clinic.sandbox.forbidden.add(permission)
        const { wrong, code } = await clinic.examine(['--sample', '1'])
        assert.deepEqual([resultsOf(wrong), code], [{ [check]: result }, 0])
        clinic.sandbox.forbidden.clear()
      }
    })

    await t.test(
      'warns of webhook endpoints that are missing, disabled or without needed events',
      async () => {
        await clinic.renew()
        let endpoints: object[] = []
        const proxy = createServer(async (request, response) => {
          if (request.url?.startsWith('/v1/webhook_endpoints')) {
            const list = { object: 'list', url: '/v1/webhook_endpoints', has_more: false, data: endpoints }
            response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(list))
            return
          }
          const headers = { authorization: request.headers.authorization ?? '' }
          const answer = await fetch(clinic.sandbox.address + request.url, { headers })
          response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
        })
        await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
        t.after(() => {
          proxy.close()
          proxy.closeAllConnections()
        })
        const env = { STRIPE_API_BASE: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
        const endpoint = { id: 'we_1', status: 'enabled', api_version: null, enabled_events: neededEvents }
        const look = async () => (await clinic.look(env)).wrong['Stripe: webhook endpoint']

        const none = await clinic.examine(['--sample', '0'], env)
        assert.match(none.wrong['Stripe: webhook endpoint']?.detail ?? '', /has no endpoint/)
        endpoints = [{ ...endpoint, status: 'disabled' }]
        assert.match((await look())?.detail ?? '', /no endpoint of the account is enabled/)
        const few = neededEvents.filter(type => type !== 'invoice.voided' && type !== 'customer.updated')
        endpoints = [
          { ...endpoint, enabled_events: few },
          { ...endpoint, enabled_events: [] },
        ]
        assert.match((await look())?.detail ?? '', /sends invoice\.voided, customer\.updated$/)
        endpoints.push(endpoint)
        assert.equal(await look(), undefined)
        const { wrong } = await clinic.look({ STRIPE_WEBHOOK_SECRET: '' })
        assert.equal(wrong['Stripe: webhook endpoint']?.result, 'skip')
      },
    )

    await t.test('stops checking the sample after two invoices without an answer', async () => {
      clinic.sandbox.requests.clear()
      clinic.sandbox.faults.set('retrieve_invoice', 'hang')
      const findings = await clinic.sample(10, { attempts: 1, patienceMs: 200 })
      assert.deepEqual(
        findings.map(({ result, check }) => `${result} ${check.replace(/in_\w+/, 'ID')}`),
        ['FAIL Sample: ID', 'FAIL Sample: ID', 'skip Sample'],
      )
      for (const { detail } of findings.slice(0, 2)) assert.match(detail, /did not answer in time/)
      assert.equal(findings[2]?.detail, 'nothing could be compared')
      // Each twice; where the machine is slow, some are given up before they get there.
      assert.ok(Number(clinic.sandbox.requests.get('retrieve_invoice')) <= 4, 'no other was asked for')
      clinic.sandbox.faults.clear()
    })

    await t.test('reports failed and outdated streams', async () => {
      await clinic.renew()
      const store = await openWriteStore(clinic.url)
      const now = Date.now()
      await store.transaction(async tx => {
        await tx.saveSuccess('stripe:events', now - 6 * 60_000)
        await tx.saveSuccess('stripe:relist', now - 49 * 60 * 60_000)
        await tx.saveSuccess('ix:recent', now - 3 * 60_000)
        await tx.saveStream({
          name: 'ix:open',
          cursor: null,
          succeeded_at: null,
          failed_at: now - 1_000,
          error: 'InvoiceXpress answered 500',
        })
      })
      await store.close()
      const { wrong } = await clinic.examine(['--sample', '0'])
      assert.deepEqual(resultsOf(wrong), {
        'Stream stripe:events': 'warn',
        'Stream stripe:relist': 'FAIL',
        'Stream ix:recent': 'warn',
        'Stream ix:open': 'FAIL',
        Sample: 'skip',
      })
      assert.match(wrong['Stream ix:open']?.detail ?? '', /InvoiceXpress answered 500; last success never/)
    })
  })

  it('reports once that the first run is not finished, with its progress', async t => {
    const clinic = await open(t)
    await prepareStore(clinic.url)
    const firstRun = async () => {
      const { wrong, findings } = await clinic.examine()
      assert.deepEqual(resultsOf(wrong), { 'First run': 'warn', Sample: 'skip' })
      assert.match(wrong.Sample?.detail ?? '', /first run is under way/)
      assert.ok(!JSON.stringify(findings).includes('bug'))
      return wrong['First run']?.detail ?? ''
    }
    assert.match(
      await firstRun(),
      /Read completely: nothing\. Not read completely: all invoices, .*all documents/,
    )
    // Invoices are there; the documents that they are tied to are not.
    await fillStore(clinic)
    assert.match(await firstRun(), /Read completely: all invoices, .*\. Not read completely: all documents/)
    await clinic.sync()
    assert.deepEqual((await clinic.examine()).wrong, {})
  })

  it('suggests the right name for a misspelt setting, and hides its value', async t => {
    const clinic = await open(t)
    await prepareStore(clinic.url)
    const { findings } = await clinic.look({
      STRIPE_API_KEYS: 'sk_test_canaryKey',
      DATABASE_URI: 'x',
      HOME_URL: 'y',
    })
    const warnings = findings.filter(({ check, result }) => check === 'Settings' && result === 'warn')
    assert.deepEqual(
      warnings.map(({ detail, next }) => [detail, next]),
      [
        [
          'STRIPE_API_KEYS is not a setting of Fatura and is ignored',
          'If you mean STRIPE_API_KEY, rename it.',
        ],
        ['DATABASE_URI is not a setting of Fatura and is ignored', 'If you mean DATABASE_URL, rename it.'],
      ],
    )
  })

  it('works without any connected system', async t => {
    const clinic = await open(t)
    await prepareStore(clinic.url)
    const none = { STRIPE_API_KEY: '', INVOICEXPRESS_API_KEY: '', INVOICEXPRESS_API_BASE: '' }
    const { wrong, code } = await clinic.examine([], { ...none, STRIPE_API_BASE: '' })
    assert.deepEqual(resultsOf(wrong), {
      Stripe: 'skip',
      InvoiceXpress: 'skip',
      Streams: 'warn',
      Sample: 'skip',
    })
    assert.equal(code, 0)
  })

  it('warns of a live key at a sandbox, and when only one system is a sandbox', async t => {
    const clinic = await open(t)
    const { wrong } = await clinic.examine(['--sample', '0'], {
      STRIPE_API_KEY: 'rk_live_canaryKey',
      INVOICEXPRESS_ACCOUNT: 'name',
      INVOICEXPRESS_API_BASE: 'https://127.0.0.1.invoicexpress.com',
    })
    assert.match(wrong['Setting STRIPE_API_BASE']?.detail ?? '', /live key/)
    assert.match(wrong.Settings?.detail ?? '', /one of Stripe and InvoiceXpress is a sandbox/)
  })

  it('warns of a clock difference of a minute, and fails at ten minutes', () => {
    const found: Finding[] = []
    const report = createReport(
      () => {},
      finding => found.push(finding),
    )
    const at = (skewMs: number) => ({
      theirs: 1_000_000 + skewMs,
      before: 999_900,
      after: 1_000_100,
      grain: 0,
    })
    for (const whose of ['Stripe', 'InvoiceXpress', 'the database'] as const)
      for (const skew of [4_000, 60_000, -600_000]) checkClock(report, whose, at(skew))
    assert.deepEqual(
      found.map(({ result, detail }) => `${result} ${detail}`),
      [
        ['ok the clock of this machine is within 5 s of it'],
        ['warn the clock of this machine is 60 s behind it'],
        [
          'FAIL the clock of this machine is 10 min ahead of it. Webhooks are refused when the clocks differ by more than 300 s',
        ],
        ...Array(2).fill([
          'ok the clock of this machine is within 5 s of it',
          'warn the clock of this machine is 60 s behind it',
          'FAIL the clock of this machine is 10 min ahead of it',
        ]),
      ].flat(),
    )
  })

  it('finds differences in the sample, and shows no personal data', async t => {
    const clinic = await open(t, { invoices: 16 })
    await clinic.sync()
    const store = await openWriteStore(clinic.url)
    const stored = await store.readLinked(null, 1_000, null)
    const [first] = stored.filter(({ document }) => document?.document?.status === 'settled')
    assert.ok(first)
    const invoice = JSON.parse(first.summary)
    const changed = { ...invoice, total_cents: 77, customer_email: 'canary@example.com' }
    await store.transaction(async tx => {
      const [before] = (await store.readInvoices(null, 1_000)).filter(({ id }) => id === first.id)
      const lines = JSON.parse(before?.lines ?? '[]')
      await tx.saveInvoices([
        {
          ...{ invoice: changed, lines: lines.slice(1), claim: first.claim ?? undefined },
          payment: { ...first.payment, amount_paid_cents: 78, payments: [] },
        },
      ] as never)
    })
    await store.close()
    const unsettled = stored.find(({ document }) => document?.document?.status === 'final')?.document
    clinic.documents.change('settle', unsettled?.id ?? 0)

    const { findings, stdout, code } = await clinic.examine(['--sample', '100'])
    const told = findings.filter(({ check }) => check === `Sample: ${first.id}`).map(({ detail }) => detail)
    assert.deepEqual(told.toSorted(), [
      `amount_paid_cents: 78 → ${first.payment.amount_paid_cents}`,
      told.find(detail => /^customer_email: 18 characters \(not shown\) → /.test(detail)),
      told.find(detail => /^lines: \d+ → \d+$/.test(detail)),
      `payments: 0 in all → ${first.payment.payments.length} in all`,
      `total_cents: 77 → ${invoice.total_cents}`,
    ])
    assert.match(stdout, new RegExp(`document ${unsettled?.id} status: final → settled`))
    assert.match(stdout, /"ix_status: final → settled"/)
    assert.match(findings.at(-1)?.detail ?? '', /: 2 differ$/)
    assert.match(findings.at(-1)?.next ?? '', /report it as a bug/)
    assert.equal(code, 1)

    await clinic.sync()
    const after = await clinic.sample(100)
    assert.ok(!JSON.stringify(after).includes(`document ${unsettled?.id}`))
  })

  it('refuses a PDF origin that is not allowed, and shows only the origin', async t => {
    const clinic = await open(t, { ix: { pdfDelay: Number.POSITIVE_INFINITY } })
    await prepareStore(clinic.url)
    // Not within this process, where one examination waits for the other: this one asks again for 3 s.
    const making = await clinic.examine(['--sample', '0'])
    assert.equal(making.wrong['InvoiceXpress: PDF origin']?.result, 'skip')
    clinic.ix.finishPdf()
    const proxy = createServer(async (request, response) => {
      const answer = await fetch(clinic.ix.address + request.url)
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
    })
    await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      proxy.close()
      proxy.closeAllConnections()
    })
    const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const { wrong } = await clinic.examine(['--sample', '0'], { INVOICEXPRESS_API_BASE: base })
    const found = wrong['InvoiceXpress: PDF origin']
    assert.equal(found?.result, 'FAIL')
    assert.ok(found.detail.startsWith(`${clinic.ix.address} is not one of`), found.detail)
    assert.ok(found.next?.endsWith(`,${clinic.ix.address}`))
    assert.doesNotMatch(JSON.stringify(found), /\.pdf/)
  })

  it('refuses a sample size that is not a number', async t => {
    const clinic = await open(t)
    const outcome = await clinic.run(['doctor', '--sample', 'all'])
    assert.deepEqual([outcome.code, outcome.stdout], [1, ''])
    assert.match(outcome.stderr, /--sample must be a whole number/)
    assert.ok(apiKey.includes('canaryKey'))
  })

  for (const engine of engines)
    it(`finds wrong counters in a synced store, and repairs them on request, on ${engine.name}`, async t => {
      const url = await engine.createStore(t)
      const clinic = await open(t, { url })
      await clinic.sync()
      const { wrong } = await clinic.examine(['--sample', '2'], { DATABASE_READ_URL: url })
      assert.deepEqual(wrong, {})

      const table = engine.name === 'sqlite' ? 'customers' : 'fatura.customers'
      const damage = `UPDATE ${table} SET total = total + 5`
      if (engine.name === 'sqlite') {
        const db = new DatabaseSync(url.slice('sqlite:'.length))
        db.exec(damage)
        db.close()
      } else await runSql(url, damage)
      const countersOf = ({ findings }: Examined) =>
        findings.find(({ check }) => check === 'Database: counters')
      const found = countersOf(await clinic.examine(['--sample', '0']))
      assert.equal(found?.result, 'FAIL')
      assert.match(found?.next ?? '', /fatura doctor --repair/)
      const repaired = countersOf(await clinic.examine(['--sample', '0', '--repair']))
      assert.match(repaired?.detail ?? '', /^\d+ were wrong and are repaired$/)
      assert.deepEqual(countersOf(await clinic.look())?.detail, 'all are correct')
    })

  for (const engine of engines)
    it(`reports a schema of another version, on ${engine.name}`, async t => {
      const url = await engine.createStore(t)
      const clinic = await open(t, { url })
      const setVersion = (version: number) =>
        changeRows(
          url,
          engine.name === 'sqlite'
            ? `PRAGMA user_version = ${version}`
            : `UPDATE fatura.migrations SET version = -version WHERE version > 0;
               INSERT INTO fatura.migrations SELECT n, (SELECT sha256 FROM fatura.migrations WHERE version = -n)
                 FROM generate_series(1, ${version}) AS n`,
        )
      await setVersion(0)
      const behind = await clinic.examine()
      assert.equal(behind.wrong['Database: schema']?.next, 'Run: fatura migrate')
      assert.equal(behind.wrong.Sample?.result, 'skip')
      await setVersion(schema.migrations.length + 1)
      const ahead = await clinic.look({}, { sample: 10 })
      assert.match(ahead.wrong['Database: schema']?.next ?? '', /Upgrade/)
    })

  it('reports a missing database', async t => {
    const clinic = await open(t)
    const file = await clinic.examine(['--sample', '0'])
    assert.equal(file.wrong.Database?.next, 'Create it with: fatura migrate')
    const url = 'postgres://fatura:canarySecret@127.0.0.1:9/fatura'
    const { wrong } = await clinic.look({
      DATABASE_URL: url,
      DATABASE_READ_URL: url.replace(':9/', ':10/'),
    })
    assert.match(wrong.Database?.detail ?? '', /The database at 127\.0\.0\.1:9 cannot be reached: /)
    assert.equal(wrong['Database: reading']?.result, 'FAIL')
    const fresh = await clinic.look({ DATABASE_URL: await createDatabase(t) })
    assert.match(fresh.wrong['Database: schema']?.detail ?? '', /schema version 0, but this Fatura needs/)
  })

  it('checks the permissions and the journal mode of a SQLite file', async t => {
    const clinic = await open(t)
    await prepareStore(clinic.url)
    const path = clinic.url.slice('sqlite:'.length)
    const { mode } = await stat(dirname(path))
    assert.equal(mode & 0o007, 0, 'a folder that was made for the store is closed to others')
    for (const folder of [clinic.cli.folder, dirname(path)]) await chmod(folder, 0o755)
    await chmod(path, 0o644)
    const db = new DatabaseSync(path)
    db.exec('PRAGMA journal_mode = DELETE')
    db.close()
    const { wrong } = await clinic.examine(['--sample', '0'])
    assert.match(wrong['Database: file']?.next ?? '', /chmod 600/)
    assert.equal(wrong['Database: journal']?.result, 'warn')
    await chmod(path, 0o666)
    assert.equal((await clinic.look()).wrong['Database: file']?.result, 'FAIL')
  })

  it('checks the permissions of the PostgreSQL role', async t => {
    const [, postgres] = engines
    const url = (await postgres?.createStore(t)) ?? ''
    const role = `fatura_doctor_${process.pid}_${Date.now().toString(36)}`
    await runSql(
      url,
      `CREATE ROLE ${role} LOGIN PASSWORD 'canarySecret'; GRANT USAGE ON SCHEMA fatura TO ${role}`,
    )
    // By then the store is gone, and with it whatever the role was granted.
    t.after(() => runSql(postgresServer(), `DROP ROLE ${role}`))
    const address = new URL(url)
    address.username = role
    address.password = 'canarySecret'
    const clinic = await open(t, { url: address.href })
    const api = await clinic.examine(['--sample', '0'])
    assert.equal(api.wrong['Database: role']?.result, 'warn')
    assert.equal(api.wrong.Streams?.result, 'skip')
    await runSql(url, `GRANT SELECT, INSERT, UPDATE, DELETE ON fatura.invoices, fatura.streams TO ${role}`)
    const { wrong } = await clinic.look()
    assert.equal(wrong['Database: role']?.result, 'FAIL')
    assert.match(wrong['Database: role']?.next ?? '', /GRANT .* ON .*fatura\.documents.* TO fatura_doctor_/)
  })
})

describe('a random sample of invoices', () => {
  for (const engine of engines)
    it(`has the requested number without duplicates after many deletions, on ${engine.name}`, async t => {
      const { store, url } = await openStores(t, engine)
      const save = (from: number, to: number) =>
        store.transaction(tx =>
          tx.saveInvoices(
            Array.from({ length: to - from }, (_, i) => {
              const id = String(from + i).padStart(4, '0')
              return {
                invoice: makeInvoice({ id: `in_${id}`, customer_id: `cus_${id.slice(0, 3)}` }),
                lines: null,
              }
            }),
          ),
        )
      assert.deepEqual(await store.drawInvoices(5), [])
      await save(0, 6)
      assert.equal((await store.drawInvoices(50)).length, 6)
      await save(6, 1_500)
      const draw = async () => (await store.drawInvoices(10)).map(({ id }) => id)
      const drawn = await draw()
      assert.equal(new Set(drawn).size, 10)
      assert.notDeepEqual(await draw(), drawn)
      await changeRows(url, "DELETE FROM fatura.invoices WHERE id > 'in_0011'")
      assert.equal(new Set(await draw()).size, 10)
    })
})
