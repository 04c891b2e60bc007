/**
 * Histories of real processes, as Jepsen checks them: `fatura sync` and `fatura serve` on one store, while Stripe changes, processes
 * are killed, restarted, frozen and doubled, the connector's clock is stepped and the store's file replaced. Each read is held
 * against all states that Stripe had.
 */
import assert from 'node:assert/strict'
import { renameSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { createRandom, pick, type Random, shuffle } from '../../sandbox/random.ts'
import type { StripeAccount } from '../../sandbox/stripe/account.ts'
import type { InvoiceRecord } from '../../src/domain/invoice.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import { createSyncWorld, type SyncWorld, trueRecord } from '../support/checks/sync-truth.ts'
import { createStoredToken, eventually, get, type Program, type Serving } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { freezeBetweenWrites } from '../support/databases/sqlite-lock.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'

const dayMs = 86_400_000

/** A state of an invoice, and the moments between which Stripe had it. */
interface State {
  fromMs: number
  untilMs: number
  record: InvoiceRecord
}

/** A finalized invoice keeps the names that it was first seen with: any that it ever had may be shown, of a draft in the end the last. */
const names = ['display_name', 'customer_name', 'company_name'] as const
const isName = (field: string) => (names as readonly string[]).includes(field)

/** All that Stripe ever showed, by the clock of this process. */
class Upstream {
  readonly states = new Map<string, State[]>()
  readonly account: StripeAccount

  constructor(account: StripeAccount) {
    this.account = account
    this.note(0)
  }

  /** Makes a change and notes its moment: nobody is answered meanwhile. */
  change(make: () => void): void {
    this.account.clock = Math.floor(Date.now() / 1_000)
    make()
    this.note(Date.now())
  }

  private note(now: number): void {
    const { invoices } = this.account
    for (const id of this.states.keys()) if (!invoices.has(id)) this.end(id, now)
    for (const id of invoices.keys()) {
      const record = trueRecord(this.account, id)
      if (record === null) continue
      const last = this.states.get(id)?.at(-1)
      if (last !== undefined && isDeepStrictEqual(last.record, record)) continue
      const state = { fromMs: now, untilMs: Number.POSITIVE_INFINITY, record }
      this.end(id, now)
      this.states.set(id, [...(this.states.get(id) ?? []), state])
    }
  }

  private end(id: string, now: number): void {
    const last = this.states.get(id)?.at(-1)
    if (last !== undefined) last.untilMs = Math.min(last.untilMs, now)
  }
}

/** A row of a list, or a detail, which has less of its invoice. */
type Row = Partial<InvoiceRecord['invoice']> & {
  id: string
  lines?: InvoiceRecord['lines']
  lines_source?: string
  downloads?: unknown
}

function isStateOf({ invoice, lines }: InvoiceRecord, row: Row): boolean {
  const { lines: shownLines, lines_source, downloads: _, ...shown } = row
  const fields = Object.entries(shown).filter(([field]) => !isName(field))
  return (
    fields.every(([field, value]) => isDeepStrictEqual(value, invoice[field as keyof typeof invoice])) &&
    (lines_source !== 'payments' || isDeepStrictEqual(shownLines, lines))
  )
}

interface Read {
  customer: string
  endedMs: number
  /** By the connector's clock; null without the header. */
  syncedAt: number | null
  /** Whether nothing changes any more. */
  isLast: boolean
  /** Whether all of the customer's invoices are among the rows. */
  isWhole: boolean
  rows: readonly Row[]
}

/** Violations of a read, in words. */
function check(read: Read, { states }: Upstream, startedMs: number): string[] {
  const { endedMs, syncedAt } = read
  // The connector's clock was right, or a day off: one of these moments lies within the history.
  const moments =
    syncedAt === null
      ? []
      : [0, dayMs, -dayMs].map(ahead => syncedAt - ahead).filter(at => at >= startedMs && at <= endedMs)
  if (syncedAt !== null && moments.length === 0)
    return [`claims ${new Date(syncedAt).toISOString()}, which is no moment of it`]
  const sinceMs = Math.min(
    ...moments,
    syncedAt === null ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY,
  )
  const wrong: string[] = []
  for (const row of read.rows) {
    const all = (states.get(row.id) ?? []).filter(({ fromMs }) => fromMs <= endedMs)
    const isTrue = all.some(({ untilMs, record }) => untilMs >= sinceMs && isStateOf(record, row))
    const named = read.isLast && row.status === 'draft' ? all.slice(-1) : all
    const isNamed = names.every(
      name => row[name] === undefined || named.some(({ record }) => record.invoice[name] === row[name]),
    )
    if (!isTrue || !isNamed) wrong.push(`${JSON.stringify(row)} is shown: ${describeStates(all, sinceMs)}`)
  }
  if (!read.isWhole || syncedAt === null) return wrong
  const shown = new Set(read.rows.map(({ id }) => id))
  for (const [id, all] of states) {
    const isThere = Number(all[0]?.fromMs) < sinceMs && Number(all.at(-1)?.untilMs) > endedMs
    if (isThere && all[0]?.record.invoice.customer_id === read.customer && !shown.has(id))
      wrong.push(`${id} is not shown: ${describeStates(all, sinceMs)}`)
  }
  return wrong
}

function describeStates(all: readonly State[], sinceMs: number): string {
  const texts = all.map(
    ({ fromMs, untilMs, record: { invoice } }) =>
      `${JSON.stringify(invoice)} from ${fromMs - sinceMs} to ${untilMs - sinceMs} ms`,
  )
  return `${texts.join('; ')} after Fatura-Synced-At`
}

/** Drafts that a connector may lose without an operator's word. */
const maxDeletions = 18

/** Changes Stripe until it is over. */
async function drive(upstream: Upstream, random: Random, isOver: () => boolean): Promise<number> {
  const { account } = upstream
  const kinds = [
    'create',
    'create',
    'finalize',
    'finalize',
    'pay',
    'void',
    'uncollectible',
    'update',
    'rename',
    'delete',
  ] as const
  let [changes, deletions, creations] = [0, 0, 0]
  while (!isOver()) {
    const kind = pick(random, kinds)
    upstream.change(() => {
      if (kind === 'rename') {
        const living = [...account.customers.values()].filter(({ deleted }) => !deleted)
        account.renameCustomer(pick(random, living).id, `Firma ${changes}`)
      } else if (kind !== 'delete' || deletions++ < maxDeletions)
        if (kind !== 'create' || creations++ < 150) account.change(kind)
    })
    changes++
    await sleep(50 + random() * 300)
  }
  return changes
}

interface Rig {
  world: SyncWorld
  url: string
  stepFile: string
  api: Serving
  syncs: Program[]
  /** The last `Fatura-Synced-At` that was read. */
  syncedAt: number
  isWrong(): boolean
  startSync(): void
  startApi(): Promise<void>
}

const path = ({ url }: Rig) => url.slice('sqlite:'.length)

/** Each leaves a connector and an API that run. */
const nemeses = {
  async 'kill sync'(rig: Rig) {
    const [first] = rig.syncs.splice(0, 1)
    await first?.stop('SIGKILL')
    rig.startSync()
    await rig.syncs.at(-1)?.waitFor(/"msg":"synchronized"/)
  },
  async 'restart serve'(rig: Rig) {
    const { api } = rig
    await rig.startApi()
    await api.stop()
  },
  async 'kill serve'(rig: Rig) {
    await rig.api.stop('SIGKILL')
    await rig.startApi()
  },
  /** It takes the lease of one that stands still, which then wakes up beside it. */
  async 'second connector'(rig: Rig) {
    const [first] = rig.syncs
    if (first) freezeBetweenWrites(first.child, rig.url)
    rig.startSync()
    await rig.syncs.at(-1)?.waitFor(/"msg":"synchronized"/)
    first?.child.kill('SIGCONT')
    await first?.waitFor(/"msg":"another process took over the synchronization of this store"/)
    rig.syncs.splice(0, 1)
    await first?.stop('SIGKILL')
  },
  async 'step the clock'(rig: Rig, isLong: boolean) {
    for (const ahead of clockSteps) {
      await writeFile(rig.stepFile, String(ahead))
      await eventually('the connector goes on by its new clock', () => {
        return rig.isWrong() || Math.abs(rig.syncedAt - Date.now() - ahead) < dayMs / 2
      })
      if (isLong) await sleep(1_000)
    }
  },
  async 'replace the file'(rig: Rig, isLong: boolean) {
    const file = path(rig)
    const db = new DatabaseSync(file)
    db.exec(`PRAGMA busy_timeout = 20000; VACUUM INTO '${file}.backup'`)
    db.close()
    if (isLong) await sleep(4_000)
    const copiedMs = Date.now()
    await eventually('changes followed', () => rig.isWrong() || rig.syncedAt > copiedMs)
    // Nobody opens the file in between: its log would lie beside the new one, which then needs a person.
    for (const ending of ['-wal', '-shm']) rmSync(`${file}${ending}`, { force: true })
    renameSync(`${file}.backup`, file)
    // It is older than what the connector wrote: nothing is written to it until somebody says so.
    const { code, stderr } = await rig.world.cli.run(['migrate', '--restored'], {
      env: { DATABASE_URL: rig.url },
    })
    assert.equal(code, 0, stderr)
  },
}
type Nemesis = keyof typeof nemeses
const clockSteps = [dayMs, -dayMs, dayMs, 0]

async function startRig(t: TestContext, engine: Engine): Promise<Rig> {
  const url = await engine.createStore(t)
  const world = await createSyncWorld(t, { invoices: 20, customers: 6, lines: 1, days: 20, seed: 77 }, url)
  const stepFile = join(world.cli.folder, 'clock')
  await writeFile(stepFile, '0')
  const rig: Rig = {
    ...{ world, url, stepFile },
    api: undefined as unknown as Serving,
    syncs: [],
    syncedAt: 0,
    isWrong: () => false,
    startSync() {
      rig.syncs.push(world.start(['sync'], { env: quickClock(10, stepFile) }))
    },
    async startApi() {
      rig.api = await world.cli.serve(['--rate-limit', 'off'], { env: { DATABASE_URL: url } })
    },
  }
  rig.startSync()
  await rig.startApi()
  return rig
}

async function runHistory(
  t: TestContext,
  engine: Engine,
  chosen: readonly Nemesis[],
  isLong: boolean,
): Promise<void> {
  const random = createRandom(campaign(77, Math.floor(Date.now() / dayMs)))
  const startedMs = Date.now()
  const rig = await startRig(t, engine)
  const { account } = rig.world
  const upstream = new Upstream(account)
  const token = await createStoredToken(rig.url)
  const customers = [
    ...new Set([...upstream.states.values()].map(([first]) => String(first?.record.invoice.customer_id))),
  ]
  const wrong: string[] = []
  let [reads, dated, refused, isOver] = [0, 0, 0, false]
  t.after(() => {
    isOver = true
  })

  async function read(customer: string, id: string | null, isLast = false): Promise<number | null> {
    // Page 1 of 10 is kept ready; others are read.
    const target = id === null ? pick(random, ['invoices', 'invoices?page_size=50']) : `invoice/${id}`
    const answer = await get(`${rig.api.address}/api/v1/client/${customer}/${target}`, token).catch(
      () => null,
    )
    const endedMs = Date.now()
    if (answer === null || answer.status === 503) {
      refused++
      return null
    }
    const { status, headers, json } = answer
    assert.ok(status === 200 || (status === 404 && id !== null), `${status} ${answer.text}`)
    if (status === 404) return null
    const header = headers.get('fatura-synced-at')
    const syncedAt = header === null ? null : Date.parse(header)
    const rows: Row[] = id === null ? json.invoices : [json]
    const isWhole = id === null && json.total === rows.length
    const found = check({ customer, endedMs, syncedAt, isLast, isWhole, rows }, upstream, startedMs)
    wrong.push(...found.map(text => `${target} of ${customer}: ${text}`))
    reads++
    if (syncedAt !== null) {
      dated++
      rig.syncedAt = syncedAt
    }
    return syncedAt
  }

  async function readOn(): Promise<void> {
    while (!isOver && wrong.length < 10) {
      const customer = pick(random, customers)
      await read(customer, null)
      const ids = [...upstream.states].filter(([, [first]]) => first?.record.invoice.customer_id === customer)
      await read(customer, pick(random, ids)[0])
      await sleep(campaign(100, 15))
    }
  }

  rig.isWrong = () => wrong.length > 0
  const driving = drive(upstream, random, () => isOver || rig.isWrong())
  const reading = Promise.all([readOn(), readOn()])
  await eventually('everything was read once', () => dated > 0)
  for (const nemesis of chosen) {
    await nemeses[nemesis](rig, isLong).catch(error => {
      for (const { child, stdout, stderr } of rig.syncs)
        t.diagnostic(`sync, exit ${child.exitCode}, ends with: ${stdout.slice(-1_000)} ${stderr.slice(-500)}`)
      throw error
    })
    if (isLong) await sleep(random() * 2_000)
    if (rig.isWrong()) break
  }
  isOver = true
  const [changes] = await Promise.all([driving, reading])
  assert.deepEqual(wrong, [])
  const lastMs = Date.now()
  await eventually('it follows up to the last change', async () => {
    const [customer = ''] = customers
    const syncedAt = await read(customer, null)
    return syncedAt !== null && syncedAt > lastMs && syncedAt < lastMs + dayMs / 2
  })
  for (const customer of customers) await read(customer, null, true)
  assert.deepEqual(wrong, [])
  const steps = chosen.filter(nemesis => nemesis === 'step the clock').length * clockSteps.length
  if (steps > 0)
    reportFigure(
      t,
      'R12',
      `${engine.name}: ${steps} steps of a day under way, 0 wrong reads, followed to the last change`,
    )
  reportFigure(
    t,
    'R17',
    `${engine.name}: 0 of ${reads} reads wrong, ${dated} with \`Fatura-Synced-At\`, ${changes} changes, ${chosen.length} nemeses`,
  )
  t.diagnostic(`${refused} refused`)
}

const bounded: Record<string, readonly Nemesis[]> = {
  sqlite: ['kill sync', 'replace the file', 'step the clock'],
  postgres: ['second connector', 'restart serve'],
}

describe('random histories of real processes', { concurrency: true }, () => {
  for (const engine of engines.filter(({ name }) => name in bounded))
    it(`every read on ${engine.name} shows a state that Stripe had at Fatura-Synced-At or later`, async t => {
      const names = Object.keys(nemeses) as Nemesis[]
      const fitting = names.filter(name => engine.name === 'sqlite' || name !== 'replace the file')
      const random = createRandom(Math.floor(Date.now() / dayMs))
      const many = Array.from({ length: 5 }, () => shuffle(random, fitting)).flat()
      await runHistory(
        t,
        engine,
        campaign(bounded[engine.name] ?? [], [...many, 'step the clock']),
        campaign(false, true),
      )
    })
})
