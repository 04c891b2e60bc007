/** `fatura sync --once` and `fatura status` against a sandbox, also when they are killed at any moment. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { createRandom, integer } from '../../sandbox/random.ts'
import type { StripeAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { syncOn, syncOnce } from '../../src/cli/start/start-sync.ts'
import { defaultRules } from '../../src/domain/link/link.ts'
import { defaultKeys } from '../../src/sources/stripe/map-claim.ts'
import { openOperatorStore, openWriteStore, prepareStore } from '../../src/store/engines.ts'
import type { Stream } from '../../src/store/store.ts'
import { readListCursor } from '../../src/sync/invoices/ranges.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import {
  apiKey,
  assertTruth,
  createSyncWorld,
  fillStore,
  freeLease,
  type Records,
  readStored,
  type SyncWorld,
  trueRecord,
  truthOf,
} from '../support/checks/sync-truth.ts'
import { assertFits, assertOneLine, type Outcome, type Program } from '../support/clients/cli.ts'
import { createDatabase, type Engine, engines } from '../support/databases/engines.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'
import { refusalOf } from '../support/worlds/settings.ts'
import { stopClock, until } from '../support/worlds/stopped-clock.ts'
import { backfillStream, eventsStream, relistStream } from '../support/worlds/sync.ts'

const once = ['sync', '--once']
/** For a run that is a start of the program: its clock is then its own. */
const node = process.execPath
/** Number of kills at random moments. */
const kills = { sqlite: campaign(2, 25), postgres: campaign(1, 100), citus: campaign(1, 5) }
/** A program is killed at a write by `strace`. */
const isTraceable = spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0

function stepsOf({ stdout }: Outcome): Record<string, unknown>[] {
  const lines = stdout.split('\n').filter(line => line.includes('"msg":"synchronized"'))
  return lines.map(line => JSON.parse(line))
}

/** Progress lines appear after ten seconds, as on a slow machine. */
function withoutProgress(outcome: Outcome): Outcome {
  return { ...outcome, stderr: outcome.stderr.replace(/^\d+ invoices listed … [^\n]*\n/gm, '') }
}

async function succeed(world: SyncWorld, args = once): Promise<Outcome> {
  const outcome = await world.run(args)
  assert.equal(outcome.code, 0, outcome.stderr)
  return outcome
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** As if everything was listed so long ago, and the last run was. */
async function age({ url }: SyncWorld, listed: number, ran: number): Promise<void> {
  const store = await openWriteStore(url)
  const streams = new Map((await store.listStreams()).map(stream => [stream.name, stream]))
  await store.transaction(async tx => {
    for (const [name, ago] of [
      [relistStream, listed],
      [eventsStream, ran],
    ] as const)
      await tx.saveStream({ ...(streams.get(name) ?? assert.fail()), succeeded_at: Date.now() - ago })
  })
  await store.close()
}

// All at once: some wait for what never answers.
describe('fatura sync', { concurrency: 12 }, () => {
  for (const engine of engines)
    it(`killed at random moments, stores the same as an undisturbed run, on ${engine.name}`, async t => {
      const random = createRandom(41)
      // Enough pages for a list in parts.
      const world = await createSyncWorld(t, { invoices: 900, seed: 15 })
      const { account } = world
      const truth = truthOf(account)
      let killed = 0
      let completed = 0
      const goal = kills[engine.name as keyof typeof kills]
      while (killed < goal) {
        const url = await engine.createStore(t)
        const env = { DATABASE_URL: url }
        // Killed again and again, until some time after the list came to its end; then all over in a new store.
        for (let isListed = false; killed < goal && !(isListed && random() < 0.5); ) {
          const program = world.start(once, { env })
          await reachRequest(world, program, integer(random, 1, 35))
          await sleep(random() * 10)
          const { signal, code } = await program.stop('SIGKILL')
          if (signal === null) assert.equal(code, 0)
          else killed++
          await freeLease(url)
          isListed = assertNotAhead(account, truth, await readStored(url))
        }
        const last = await world.run(once, { env })
        assert.equal(last.code, 0, last.stderr)
        await assertTruth(url, account)
        completed++
      }
      reportFigure(
        t,
        'R1',
        `${engine.name}: ${killed} kills at random, ${completed} stores of ${truth.size} invoices equal`,
      )
    })

  it('killed at any write to a file, stores the same as an undisturbed run', {
    skip: isTraceable ? false : 'there is no strace',
  }, async t => {
    const world = await createSyncWorld(t, { invoices: 50, seed: 15 })
    const { account, sandbox, cli } = world
    const truth = truthOf(account)
    const [sqlite] = engines as [Engine]
    const step = campaign(60, 1)
    let [write, killed, isOver] = [0, 0, false]
    const killInTurn = async () => {
      while (!isOver) {
        write += step
        const turn = write
        const url = await sqlite.createStore(t)
        const file = url.slice('sqlite:'.length)
        const trace = `-f -qq -o /dev/null -P ${file} -P ${file}-wal -e trace=pwrite64`
        const kill = `-e inject=pwrite64:signal=KILL:when=${turn}`
        const traced = join(cli.folder, `node-${turn}`)
        await writeFile(traced, `#!/bin/sh\nexec strace ${trace} ${kill} '${node}' "$@"\n`, { mode: 0o755 })
        const { signal, code } = await world.start(once, { env: { DATABASE_URL: url }, node: traced }).exited
        if (signal === null) {
          assert.equal(code, 0)
          isOver = true
        } else killed++
        assertNotAhead(account, truth, await readStored(url))
        await fillStore({ url, sandbox })
        await assertTruth(url, account)
      }
    }
    await Promise.all(Array.from({ length: campaign(1, 3) }, killInTurn))
    assert.ok(killed > 0)
    reportFigure(
      t,
      'R1',
      `sqlite: ${killed} kills, one at every${step > 1 ? ` ${step}th` : ''} write of ${truth.size} invoices, all stores equal`,
    )
  })

  for (const engine of ['sqlite', 'postgres'] as const)
    it(`stores the whole account on ${engine}, and a second run changes nothing`, async t => {
      const url = engine === 'postgres' ? await createDatabase(t) : undefined
      const world = await createSyncWorld(t, { invoices: 250, seed: 11 }, url)
      if (engine === 'postgres') {
        assertOneLine(await world.run(once), /fatura migrate/)
        await succeed(world, ['migrate'])
      }
      const first = await succeed(world)
      const truth = truthOf(world.account)
      assert.ok([...truth.values()].some(({ lines }) => (lines ?? []).length > 10))
      await assertTruth(world.url, world.account)
      assert.deepEqual(
        stepsOf(first).map(({ step, changed }) => [step, changed]),
        [
          ['backfill', truth.size],
          ['catchUp', 0],
          ['rereadUnsettled', 0],
        ],
      )

      assert.equal(world.sandbox.requests.get('retrieve_invoice'), undefined, 'what was just listed')

      const before = await readStored(world.url)
      world.sandbox.requests.clear()
      const second = await succeed(world)
      assert.equal(world.sandbox.requests.get('retrieve_invoice'), undefined, 'what did not change is listed')
      assert.equal(world.sandbox.requests.get('list_invoices'), 3, 'drafts, open and uncollectible ones')
      assert.deepEqual(
        stepsOf(second).map(({ changed, deleted }) => [changed, deleted]),
        [
          [0, 0],
          [0, 0],
          [0, 0],
        ],
      )
      assert.deepEqual((await readStored(world.url)).records, before.records)
    })

  it('stores the changes since the last run', async t => {
    const world = await createSyncWorld(t, { invoices: 80, lines: 1, seed: 12 })
    await fillStore(world)
    for (const kind of ['create', 'finalize', 'pay', 'void', 'delete', 'update', 'uncollectible'] as const)
      for (let count = 0; count < 3; count++) world.account.change(kind)
    const outcome = await succeed(world)
    assert.ok(Number(stepsOf(outcome)[1]?.changed) > 0)
    await assertTruth(world.url, world.account)
  })

  it('ends with one line when the key or the address is missing, wrong or refused', async t => {
    const world = await createSyncWorld(t, { invoices: 3 })
    const attempt = (env: Record<string, string>, args = once) => world.run(args, { env })
    assertOneLine(await attempt({ STRIPE_API_KEY: '' }), /STRIPE_API_KEY/)
    assertOneLine(await attempt({ STRIPE_API_KEY: 'canaryKey' }), /STRIPE_API_KEY must .*sk_ or rk_/)
    assertOneLine(await attempt({ STRIPE_API_BASE: 'sandbox' }), /STRIPE_API_BASE must/)
    for (const base of ['ftp://127.0.0.1', 'http://127.0.0.1/v1', 'http://[::1'])
      assert.match(refusalOf('STRIPE_API_BASE', base), /STRIPE_API_BASE must/)
    assertOneLine(
      await attempt({ STRIPE_API_KEY: 'sk_test_canaryKeyOther' }),
      /refused the key.* The next run continues from there\.$/m,
    )
    const { records, streams } = await readStored(world.url)
    assert.equal(records.size, 0)
    assert.deepEqual(
      streams.map(({ succeeded_at }) => succeeded_at).filter(at => at !== null),
      [],
    )
    const port = ['sync', '--webhooks']
    assertOneLine(await attempt({}, [...port, '65536']), /--webhooks must be a port/)
    assertOneLine(
      await attempt({ STRIPE_WEBHOOK_SECRET: '' }, [...port, '0']),
      /--webhooks needs STRIPE_WEBHOOK_SECRET/,
    )
    assertOneLine(
      await attempt({ STRIPE_WEBHOOK_SECRET: 'canarySecret' }, [...port, '0']),
      /begins with whsec_/,
    )
  })

  it('ends at SIGTERM while Stripe hangs, and continues at the next run', async t => {
    const world = await createSyncWorld(t, { invoices: 150, seed: 16 })
    world.sandbox.faults.set('list_lines', 'hang')
    // Half a second of the five that calls under way have.
    const program = world.start(once, { env: quickClock(10) })
    await until(() => world.sandbox.requests.has('list_lines'))
    assertOneLine(
      withoutProgress(await program.stop()),
      /Stopped before everything was synchronized\. The next run continues from there/,
    )
    world.sandbox.faults.clear()
    await succeed(world)
    await assertTruth(world.url, world.account)
  })

  it('succeeds despite temporary faults', async t => {
    const world = await createSyncWorld(t, { invoices: 150, seed: 14 })
    world.sandbox.faults.set('list_invoices', 'truncated', { times: 2 })
    world.sandbox.faults.set('list_lines', 'error_500', { times: 2 })
    world.sandbox.faults.set('list_events', 'too_many', { times: 1, retryAfter: '1' })
    await succeed(world)
    await assertTruth(world.url, world.account)
  })

  it('with --full finds changes that no event announced', async t => {
    const world = await createSyncWorld(t, { invoices: 60, lines: 1, seed: 18 })
    const { account } = world
    await fillStore(world)
    const told = account.events.length
    const lost = newInvoice(account)
    account.change('finalize', lost)
    account.change('pay', lost)
    const [changed] =
      [...truthOf(account)].find(([, { invoice }]) => invoice.status === 'paid') ?? assert.fail()
    account.setMetadata(changed, { ix_state: 'failed' })
    account.events.splice(told)
    await fillStore(world)
    const { records } = await readStored(world.url)
    assert.equal(records.get(lost), undefined)
    assert.equal(records.get(changed)?.invoice.ix_sync_state, 'not_synced')

    const full = await succeed(world, ['sync', '--once', '--full'])
    assert.deepEqual(
      stepsOf(full).map(({ step, changed }) => [step, changed]),
      [
        ['backfill', 0],
        ['catchUp', 0],
        ['relist', 2],
        ['rereadUnsettled', 0],
      ],
    )
    const after = await readStored(world.url)
    assert.deepEqual(after.records.get(lost), trueRecord(account, lost))
    assert.equal(after.records.get(changed)?.invoice.ix_sync_state, 'failed')
    const { stdout } = await succeed(world, ['status'])
    assert.match(stdout, /^stripe:relist +\d{4}-\d\d-\d\dT\S+Z +\d+ (s|min)/m)
  })

  it('lists all invoices once a day when cron runs sync --once', async t => {
    // In test mode it does so more often.
    const apiKey = 'sk_live_canaryKey0123456789'
    const world = await createSyncWorld(t, { invoices: 60, lines: 1, seed: 20, apiKey })
    const fill = () => fillStore({ ...world, key: apiKey })
    await fill()
    const [id] =
      [...truthOf(world.account)].find(([, { invoice }]) => invoice.status === 'paid') ?? assert.fail()
    const invoice = world.account.invoices.get(id) ?? assert.fail()
    const run = async (listed: number, ran: number) => {
      await age(world, listed, ran)
      await fill()
      return (await readStored(world.url)).records.get(id)?.invoice.status
    }
    // No event tells of it.
    invoice.status = 'void'
    assert.equal(await run(23 * hourMs, 5 * minuteMs), 'paid', 'not due before the next run')
    assert.equal(await run(24 * hourMs - minuteMs, 5 * minuteMs), 'void')
    invoice.status = 'paid'
    assert.equal(await run(5 * minuteMs, 5 * minuteMs), 'void', 'not due again')
    assert.equal(await run(24 * hourMs - minuteMs, 24 * hourMs - minuteMs), 'paid', 'a run once a day')
  })

  it('continues after an invalid record, reports the record and requests it again', async t => {
    const world = await createSyncWorld(t, { invoices: 60, lines: 1, seed: 19 })
    const { account } = world
    const [id] = [...truthOf(account)].find(([, { invoice }]) => invoice.status === 'paid') ?? assert.fail()
    const sound = account.invoices.get(id) as StripeInvoice
    account.invoices.set(id, { ...sound, total: 'many' as unknown as number })
    const first = await succeed(world)
    assert.match(first.stdout, new RegExp(`"invoice":"${id}".*set aside`))
    const { records } = await readStored(world.url)
    account.invoices.set(id, sound)
    const truth = truthOf(account)
    assert.equal(records.size, truth.size - 1)
    assert.ok(!records.has(id))
    const second = await succeed(world)
    assert.ok(stepsOf(second).some(({ step, changed }) => step === 'retrySetAside' && changed === 1))
    await assertTruth(world.url, account)
    assert.ok(!stepsOf(await succeed(world)).some(({ step }) => step === 'retrySetAside'))
  })
})

interface Running {
  /** Every log line so far. */
  logged: string[]
  /** Resolves with the reason why it ended, or null. */
  ended: Promise<Error | null>
  stop(): void
}

/** `sync --once`, or `sync`, within this process: its clock is the test's. */
async function syncHere(
  { url, sandbox }: SyncWorld,
  run: typeof syncOnce | typeof syncOn = syncOnce,
  base = sandbox.address,
): Promise<Running> {
  await prepareStore(url)
  const logged: string[] = []
  const stopping = new AbortController()
  const ended = run({
    url,
    stripe: { apiKey, base },
    invoiceXpress: null,
    rules: { ...defaultRules, isConnected: false },
    keys: defaultKeys,
    webhooks: null,
    changesKeptMs: 86_400_000,
    outgoingWebhooksPrivate: false,
    log: pino({ base: null }, { write: line => void logged.push(line) }),
    signal: stopping.signal,
  }).then(
    () => null,
    error => error,
  )
  return { logged, ended, stop: () => stopping.abort() }
}

/** The message of its failure, however long it tries. */
async function failureOf(t: TestContext, { ended }: Running): Promise<string> {
  const clock = stopClock(t)
  let message: string | undefined
  ended.then(error => {
    message = error?.message ?? 'none'
  })
  await until(async () => {
    await clock.pass(100)
    return message !== undefined
  })
  return message ?? ''
}

// One after the other: this process has one clock.
describe('fatura sync over a long time', () => {
  it('ends with the reason when no server answers at the address', async t => {
    const world = await createSyncWorld(t, { invoices: 3 })
    assert.match(
      await failureOf(t, await syncHere(world, syncOnce, 'http://127.0.0.1:9')),
      /^Stripe could not be reached at http:\/\/127\.0\.0\.1:9 \(ECONNREFUSED\)\. Check the network and STRIPE_API_BASE$/,
    )
  })

  it('reports a failing upstream, and continues where it stopped', async t => {
    const world = await createSyncWorld(t, { invoices: 250, lines: 1, seed: 13 })
    const { sandbox, account } = world
    const statusOf = async (): Promise<TextOf<Stream>[]> => {
      const { stdout } = await succeed(world, ['status', '--json'])
      return stdout
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
        .filter(({ kind }) => kind === 'stream')
    }
    sandbox.faults.set('list_invoices', 'error_503', { after: 2 })
    const began = Date.now()
    assert.match(await failureOf(t, await syncHere(world)), /^Stripe answered /)

    const streams = await statusOf()
    const backfill = streams.find(({ name }) => name === backfillStream)
    assert.equal(backfill?.succeeded_at, null)
    assert.ok(backfill?.failed_at !== null && /^Stripe answered/.test(backfill?.error ?? ''))
    const table = await succeed(world, ['status'])
    assertFits(table.stdout)
    // How wide its columns are depends on the number of parts that are left.
    assert.match(table.stdout, /^STREAM +LAST SUCCESS +AGO +CURSOR\s+FAILURE\n/)
    assert.match(
      table.stdout,
      /^stripe:backfill +never +\d+ parts? left\s+\d{4}-\d\d-\d\dT\S+Z Stripe\s+answered/m,
    )
    assertNotAhead(account, truthOf(account), await readStored(world.url))

    sandbox.faults.clear()
    sandbox.requests.clear()
    await succeed(world)
    await assertTruth(world.url, account)
    // And one for each kind of what may still change.
    assert.ok((sandbox.requests.get('list_invoices') ?? 0) <= 2 + 3, 'the first page is not read again')
    const names = ['stripe:backfill', 'stripe:events', 'stripe:relist', 'stripe:unsettled']
    const after = await statusOf()
    assert.deepEqual(
      after.map(({ name }) => name),
      names,
    )
    for (const { name, succeeded_at, failed_at, error } of after) {
      assert.ok(succeeded_at !== null && Date.parse(succeeded_at) >= began, name)
      assert.deepEqual([failed_at, error], [null, null], name)
    }
    const healed = await succeed(world, ['status'])
    for (const name of names)
      assert.match(healed.stdout, new RegExp(`^${name} +\\d{4}-\\d\\d-\\d\\dT\\S+Z +\\d+ (s|min)`, 'm'))
    assert.doesNotMatch(healed.stdout, /Stripe answered/)
  })

  it('ends five seconds after its signal when Stripe hangs', async t => {
    const clock = stopClock(t)
    const world = await createSyncWorld(t, { invoices: 150, seed: 16 })
    world.sandbox.faults.set('list_lines', 'hang')
    const run = await syncHere(world)
    await until(() => world.sandbox.requests.has('list_lines'))
    let isOver = false
    run.ended.then(() => {
      isOver = true
    })
    run.stop()
    await clock.pass(4_999)
    assert.equal(isOver, false)
    await clock.pass(1)
    assert.equal((await run.ended)?.name, 'AbortError')
  })

  it('stores new invoices within ten seconds while it still lists the whole account', async t => {
    const clock = stopClock(t)
    const world = await createSyncWorld(t, { invoices: 20, lines: 1, seed: 17 })
    const { sandbox, account } = world
    sandbox.faults.set('list_invoices', 'hang')
    const run = await syncHere(world, syncOn)
    await until(() => sandbox.requests.has('list_invoices'))
    const id = newInvoice(account)
    await clock.pass(10_000)
    await until(async () => (await readStored(world.url)).records.has(id))
    const { streams } = await readStored(world.url)
    assert.equal(streams.find(({ name }) => name === backfillStream)?.succeeded_at, null)
    run.stop()
    await clock.pass(5_000)
    assert.equal(await run.ended, null)
  })

  it('counts and logs the corrections that no event announced', async t => {
    const clock = stopClock(t)
    const world = await createSyncWorld(t, { invoices: 60, lines: 1, seed: 21 })
    await fillStore(world)
    const changed = [...truthOf(world.account)].filter(([, { invoice }]) => invoice.status === 'paid')
    for (const [id] of changed) (world.account.invoices.get(id) ?? assert.fail()).status = 'void'
    const run = await syncHere(world, syncOn)
    const store = await openOperatorStore(world.url)
    t.after(() => store.close())
    const corrected = async () => (await store.readRechecks(Date.now()))[0]?.corrected ?? 0
    await until(async () => {
      await clock.pass(5_000)
      return (await corrected()) > 0
    })
    assert.equal(await corrected(), changed.length)
    assert.equal(
      run.logged.filter(line => line.includes('"msg":"an invoice had changed without an event"')).length,
      changed.length,
    )
    const { records } = await readStored(world.url)
    assert.ok(changed.every(([id]) => records.get(id)?.invoice.status === 'void'))
    run.stop()
    await clock.pass(5_000)
    assert.equal(await run.ended, null)
  })
})

/** An invoice of a customer. */
function newInvoice(account: StripeAccount): string {
  for (;;) {
    const id = account.change('create')
    if (trueRecord(account, id) !== null) return id
  }
}

describe('fatura status', () => {
  it('gives advice for an empty store', async t => {
    const world = await createSyncWorld(t, { invoices: 50 })
    assertOneLine(await world.run(['status']))
    await succeed(world, ['migrate'])
    const { stdout } = await succeed(world, ['status'])
    assertFits(stdout)
    assert.match(
      stdout.replaceAll('\n', ' '),
      /^Nothing was synchronized or imported yet\. Start with "fatura sync --once" or "fatura import FILE"\. $/,
    )
    assert.equal((await succeed(world, ['status', '--json'])).stdout, '')
  })
})

/** Resolves once the sandbox has served so many more requests, or the program has ended. */
async function reachRequest({ sandbox }: SyncWorld, { child }: Program, count: number): Promise<void> {
  const served = () => sandbox.requests.values().reduce((sum, requests) => sum + requests, 0)
  const goal = served() + count
  while (served() < goal && child.exitCode === null) await sleep(1)
}

/** Every listed invoice outside of the cursor's rest is stored as it is. True when nothing is left. */
function assertNotAhead(
  account: StripeAccount,
  truth: Records,
  { records, streams }: Awaited<ReturnType<typeof readStored>>,
): boolean {
  const backfill = streams.find(({ name }) => name === backfillStream)
  if (backfill === undefined || (backfill.cursor === null && backfill.succeeded_at === null)) return false
  const left = backfill.cursor === null ? [] : readListCursor(backfill.cursor).ranges
  const places = new Map(
    Array.from({ length: account.order.length }, (_, place) => [account.order.at(place), place]),
  )
  for (const [id, record] of truth) {
    const { created } = account.invoices.get(id) as StripeInvoice
    const isLeft = left.some(
      ({ from, before, after }) =>
        created >= (from ?? 0) &&
        created < (before ?? Number.POSITIVE_INFINITY) &&
        (after === null || Number(places.get(id)) < Number(places.get(after))),
    )
    if (!isLeft) assert.deepEqual(records.get(id), record, id)
  }
  return left.length === 0
}

/** As `--json` prints it: moments are texts. */
type TextOf<T> = { [Name in keyof T]: Name extends `${string}_at` ? string | null : T[Name] }
