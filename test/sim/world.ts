/**
 * One seed is one world: both upstream systems, connectors, readers, webhooks and an operator in one process on virtual time. A
 * step lets something happen that the seed draws; after every commit the invariants are checked.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { FastifyInstance } from 'fastify'
import { type Logger, pino } from 'pino'
import { createRandom, integer, pick, type Random } from '../../sandbox/random.ts'
import type { AccountStatement } from '../../src/domain/account.ts'
import type { CustomerBalance } from '../../src/domain/balance.ts'
import { dayMs } from '../../src/domain/calendar.ts'
import type { ChangeList } from '../../src/domain/change.ts'
import { type Invoice, type InvoiceList, keyOf } from '../../src/domain/invoice.ts'
import { defaultRules } from '../../src/domain/link/link.ts'
import { defaultTemplates, readTemplate, type Template } from '../../src/domain/link/reference.ts'
import { createAuthenticate } from '../../src/http/access/authenticate.ts'
import { createToken } from '../../src/http/access/token.ts'
import { createApp } from '../../src/http/app.ts'
import { readChecked } from '../../src/operations/reconcile/read-pairs.ts'
import { findDifferences } from '../../src/operations/reconcile/reconcile.ts'
import { SourceError } from '../../src/sources/source.ts'
import { stripeIdentity } from '../../src/sources/stripe/source-identity.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import { openSqliteOperator } from '../../src/store/sqlite/operator.ts'
import { openSqliteReader } from '../../src/store/sqlite/reader.ts'
import { openSqliteWriter, takeTurns } from '../../src/store/sqlite/writer.ts'
import { createStamps } from '../../src/store/stamps.ts'
import {
  type ConnectorStores,
  type OperatorStore,
  type ReadStore,
  StoreError,
  type WriteStore,
} from '../../src/store/store.ts'
import { createDeletionGuard } from '../../src/sync/deletion-guard.ts'
import { createDocumentSync, roundsApartMs } from '../../src/sync/documents/documents.ts'
import { type Connector, createConnector } from '../../src/sync/invoices/connector.ts'
import { fenceStore, waitForLease } from '../../src/sync/lease.ts'
import { ageClaims, relinkInvoices } from '../../src/sync/link-invoices.ts'
import { documentQuestions, invoiceQuestions } from '../../src/sync/questions.ts'
import { readState } from '../../src/sync/read-state.ts'
import { createRounds } from '../../src/sync/rounds.ts'
import { every, everyMs, realClocks, repeat, runDue } from '../../src/sync/schedule.ts'
import { WrittenPlace } from '../../src/sync/written-place.ts'
import { type Copies, openCopies } from './copies.ts'
import { changeMany, type Density, drawDensity, drawLongPause, populateDensely } from './dense.ts'
import { addFaults } from './faulty-store.ts'
import {
  type Committer,
  checkStatement,
  Invariants,
  openTables,
  type Seen,
  type Tables,
  Violation,
  writeBalances,
} from './invariants.ts'
import { createSources, type Faults } from './sources.ts'
import { customers, type ModelEvent, Upstreams } from './upstreams.ts'
import { type Point, type Process, realCalls, settle, VirtualTime } from './virtual-time.ts'

/** Late in a month: few months lie between the first invoice and the last. */
const startMs = Date.parse('2026-03-25T12:00:00Z')
/** Where a commit does not wait for a disk. */
const memoryFolder = '/dev/shm'
const numberTemplate = readTemplate('{number}') as Template
/** One world of so many is dense. */
const denseEvery = 3
/** All customers, as the reader of a feed. */
const everyone = 'everyone'
/** Steps that a failure shows. */
const stepsShown = 40

export interface Outcome {
  seed: number
  isShort: boolean
  steps: number
  /** Null when every invariant held. */
  violation: string | null
  /** The last steps. */
  trace: readonly string[]
}

/** The last steps, what went wrong, and a line to reproduce it. */
export function formatOutcome({ seed, isShort, violation, trace }: Outcome): string {
  const steps = trace.join('\n')
  return `${steps}\nseed ${seed}: ${violation ?? 'every invariant held'}\nReproduce with: npm run sim -- --seed ${seed}${isShort ? ' --short' : ''}`
}

/** A process that is, or waits to be, the connector. */
interface ConnectorProcess extends Process, Committer {
  connector: Connector | null
  hasEnded: boolean
  close(): void
}

const noLosses = () => ({ firstMs: 0, lastMs: Number.NEGATIVE_INFINITY, ids: new Set<string>() })

/** What all worlds share: an empty store with tokens, and the API over the store of the world that runs. */
export interface Stage {
  /** Runs one world. */
  run(seed: number): Promise<Outcome>
  close(): Promise<void>
}

/** Short worlds have fewer steps, and few of them go on until the store equals its sources. */
export async function openStage(isShort = false): Promise<Stage> {
  const folder = mkdtempSync(join(existsSync(memoryFolder) ? memoryFolder : tmpdir(), 'fatura-sim-'))
  const template = join(folder, 'template.db')
  await migrateStore(`sqlite:${template}`)
  const store = await openWriteStore(`sqlite:${template}`)
  const tokens = await saveTokens(store)
  await store.close()
  const db = new DatabaseSync(template)
  // Counters are kept from thousands of invoices on: here one customer has them from the first.
  db.exec(`INSERT INTO customers (customer_id, version, counted) VALUES ('${customers[0]}', 0, 1);
    PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE`)
  db.close()
  const path = join(folder, 'world.db')
  copyFileSync(template, path)
  const copies = openCopies(path, template, join(folder, 'backup.db'))
  const reader = openSqliteReader(path)
  const apps = await openApis(reader)
  const tables = openTables(path)
  const idle: ConnectorStores[] = []
  const stores: WorldStores = {
    copies,
    refresh: null,
    openConnector: async () =>
      takeTurns({
        store: await openSqliteWriter(path),
        leases: await openSqliteWriter(path, { patienceMs: 200 }),
      }),
    openOperator: () => openSqliteOperator(path),
  }
  return {
    async run(seed) {
      copies.reset()
      return new World(seed, { stores, apps, tokens, tables, idle, isShort }).run()
    },
    async close() {
      idle.forEach(closeBoth)
      for (const app of apps) await app.close()
      await reader.close()
      copies.close()
      tables.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** By customer. */
export async function saveTokens(store: WriteStore): Promise<Map<string, string>> {
  const tokens = new Map<string, string>()
  for (const customer of [...customers, everyone]) {
    const { id, token, hash } = createToken()
    const times = { created_at: 0, expires_at: null, revoked_at: null }
    const scope = customer === everyone ? null : [customer]
    await store.saveToken({ id, name: customer, hash, customers: scope, ...times })
    tokens.set(customer, token)
  }
  return tokens
}

export function closeBoth({ store, leases }: ConnectorStores): void {
  void leases.close()
  void store.close()
}

/** Two processes of the API. */
export function openApis(store: ReadStore): Promise<FastifyInstance[]> {
  return Promise.all([0, 1].map(() => openApi(store)))
}

async function openApi(store: ReadStore): Promise<FastifyInstance> {
  const app = createApp({
    store,
    payments: null,
    documents: null,
    authenticate: createAuthenticate({
      findToken: id => store.findToken(id),
      coversCustomer: (id, customer) => store.coversCustomer(id, customer),
      verifyJwt: null,
    }),
    rateLimit: null,
    log: pino({ level: 'silent' }),
    apiDescription: Buffer.from('{}'),
  })
  await app.ready()
  return app
}

/** Where a world's records are. */
export interface WorldStores {
  openConnector(): Promise<ConnectorStores>
  openOperator(): Promise<OperatorStore>
  /** Null where a world has no backups. */
  copies: Copies | null
  /** Brings the tables up to date that the invariants look at; null where these are the store's own. */
  refresh: (() => Promise<void>) | null
}

/** What worlds share, one after the other. */
interface Shared {
  stores: WorldStores
  apps: readonly FastifyInstance[]
  /** By customer. */
  tokens: ReadonlyMap<string, string>
  tables: Tables
  /** Connections of processes that ended, for the next ones: to open them takes a third of the time. */
  idle: ConnectorStores[]
  isShort: boolean
}

export class World {
  private readonly seed: number
  private readonly isShort: boolean
  private readonly stores: WorldStores
  private readonly apps: readonly FastifyInstance[]
  private readonly tokens: ReadonlyMap<string, string>
  private readonly idle: ConnectorStores[]
  private readonly random: Random
  private readonly time: VirtualTime
  private readonly model: Upstreams
  private readonly invariants: Invariants
  private readonly faults: Faults
  private readonly log: Logger
  private readonly processes: ConnectorProcess[] = []
  /** Those that committed since the last look. */
  private readonly committers = new Set<ConnectorProcess>()
  private readonly deadNames = new Set<string>()
  /** Bodies by path and ETag. */
  private readonly bodies = new Map<string, string>()
  /** By customer, a reader of its feed: its cursor, and its invoices as they were then. */
  private readonly followed = new Map<string, { after: string; rows: Map<string, string> }>()
  private readonly undelivered: ModelEvent[] = []
  private delivered = 0
  private readonly trace: string[] = []
  private steps = 0
  private failure: unknown = null
  private readonly fetchesPerRun: number
  /** Null in most worlds. */
  private readonly density: Density | null
  /** What the invariants had seen when the store was backed up; null without a backup. */
  private backup: Seen | null = null
  /** Whether an invoicing system is connected. */
  private readonly hasDocuments: boolean
  /** Whether documents may name an invoice by its number. */
  private readonly hasNumbers: boolean

  constructor(seed: number, { stores, apps, tokens, tables, idle, isShort }: Shared) {
    this.seed = seed
    this.isShort = isShort
    this.stores = stores
    this.apps = apps
    this.tokens = tokens
    this.idle = idle
    // Neighbouring seeds of the generator begin alike.
    this.random = createRandom(Math.imul(seed + 1, 0x9e3779b1))
    this.time = new VirtualTime(this.random, startMs)
    this.model = new Upstreams(this.random, this.time)
    const [worst] = this.model.draw<[number]>([
      [2, 0.003],
      [6, 0.06],
      [2, 0.2],
    ])
    this.faults = { sourceRate: worst * this.random(), storeRate: (worst / 2) * this.random() }
    this.hasDocuments = this.chance(0.6)
    this.hasNumbers = this.chance(0.5)
    const fetchesPerRun = this.chance(0.3) ? integer(this.random, 1, 3) : 200
    this.density = seed % denseEvery === 0 ? drawDensity(this.model, this.hasDocuments) : null
    this.fetchesPerRun = this.density?.fetchesPerRun ?? fetchesPerRun
    if (this.density !== null) this.model.pageSizes = this.density.pageSizes
    this.model.isDense = this.density !== null
    this.invariants = new Invariants(tables, this.model, this.time, this.hasNumbers)
    this.log = this.createLog()
  }

  private chance(share: number): boolean {
    return this.random() < share
  }

  private note(step: string): void {
    this.steps++
    this.trace.push(`${String(this.time.nowMs - startMs).padStart(10)}  ${step}`)
    if (this.trace.length > 4 * stepsShown) this.trace.splice(0, 2 * stepsShown)
  }

  private fail(error: unknown): void {
    this.failure ??= error
  }

  private createLog(): Logger {
    const nothing = () => {}
    const error = ({ err }: { err?: unknown }) => err !== undefined && this.expect(err)
    const warn = ({ invoice_id }: { invoice_id?: string }, message: string) => {
      if (message !== 'an invoice had changed without an event') return
      this.note(`${invoice_id} had changed without an event`)
      if (!this.invariants.hasChangedInSilence(String(invoice_id)))
        this.fail(new Violation(`${invoice_id} counts as changed without an event, and each change had one`))
    }
    return { error, warn, info: nothing, debug: nothing, trace: nothing } as unknown as Logger
  }

  async run(): Promise<Outcome> {
    const onRejection = (error: unknown) => this.fail(error)
    process.on('unhandledRejection', onRejection)
    this.time.begin()
    try {
      if (this.density === null) this.populate()
      else populateDensely(this.model, this.density, startMs)
      await this.start()
      if (this.chance(0.6)) await this.settleDown(1)
      const steps = integer(this.random, 10, 50) / (this.isShort ? 3 : 1)
      for (let step = 0; step < steps; step++) {
        await this.step()
        this.look()
      }
      if (this.chance(this.isShort ? 0.08 : 0.3)) await this.converge()
      return this.outcome(null)
    } catch (error) {
      return this.outcome(this.failure ?? error)
    } finally {
      for (const process of this.processes) this.kill(process)
      this.time.end()
      process.off('unhandledRejection', onRejection)
    }
  }

  private outcome(error: unknown): Outcome {
    const { seed, steps, isShort } = this
    const text =
      error instanceof Violation
        ? error.message
        : error instanceof Error
          ? String(error.stack)
          : String(error)
    return {
      seed,
      steps,
      isShort,
      violation: error === null ? null : text,
      trace: this.trace.slice(-stepsShown),
    }
  }

  /** What was there before the first synchronization. */
  private populate(): void {
    const isLarge = this.chance(0.05)
    /** Whether each has a document. */
    const isCertified = isLarge && this.hasDocuments && this.chance(0.5)
    const count = isLarge ? integer(this.random, 26, 40) : integer(this.random, 0, 5)
    for (let i = 0; i < count; i++) {
      const createdMs = startMs - Math.floor(((count - i) / count) * 18 * dayMs)
      const statuses = !isLarge
        ? (['draft', 'open', 'paid', 'void'] as const)
        : isCertified
          ? (['open', 'paid'] as const)
          : (['draft', 'draft', 'draft', 'draft', 'open'] as const)
      const reference = this.model.createInvoice(pick(this.random, statuses), createdMs)
      if (isCertified) this.model.createDocument({ reference, status: 'final' })
    }
    // More than a page of documents, and not of the last days.
    const date = new Date(startMs - 9 * dayMs).toISOString().slice(0, 10)
    if (this.chance(0.2)) for (let i = 0; i < 8; i++) this.model.createDocument({ status: 'final', date })
    for (let i = 0; i < integer(this.random, 0, 4); i++) this.model.change()
  }

  private living(): ConnectorProcess[] {
    return this.processes.filter(({ isDead, hasEnded }) => !isDead && !hasEnded)
  }

  private async start(options: { letThrough?: boolean; isFull?: boolean } = {}): Promise<void> {
    const { letThrough = false } = options
    const name = `connector ${this.processes.length + 1}`
    const process: ConnectorProcess = {
      name,
      isDead: false,
      aheadMs: 0,
      epoch: null,
      letThrough,
      losses: { deletion: noLosses(), lost_document: noLosses() },
      connector: null,
      hasEnded: false,
      close: () => {},
    }
    this.processes.push(process)
    this.note(`${name} starts ${JSON.stringify(options)}`)
    await this.time.runAs(process, () => {
      this.connect(process, options).then(
        () => this.end(process),
        error => {
          this.expect(error)
          this.note(`${name} ends: ${error.message}`)
          this.end(process)
        },
      )
    })
  }

  /** It may be in the middle of a step: its store is closed at the end of it. */
  private end(process: ConnectorProcess): void {
    if (process.isDead) return
    process.hasEnded = true
    this.deadNames.add(process.name)
    this.time.kill(process)
  }

  /** As with SIGKILL: its memory and its open transaction are lost. */
  private kill(process: ConnectorProcess): void {
    this.deadNames.add(process.name)
    this.time.kill(process)
    process.connector = null
    process.close()
    process.close = () => {}
  }

  /** As `fatura sync` is wired. */
  private async connect(process: ConnectorProcess, { letThrough = false, isFull = false }): Promise<void> {
    const { log, time, faults } = this
    const { refresh } = this.stores
    const opened = async () => this.idle.pop() ?? this.stores.openConnector()
    const stores = await (refresh === null ? opened() : realCalls.run(opened))
    const {
      store: faulty,
      leases,
      isIdle,
    } = addFaults(stores, {
      time,
      faults,
      process,
      isReal: refresh !== null,
      onCommit: () =>
        refresh === null ? this.onCommit(process) : refresh().then(() => this.onCommit(process)),
      onMiss: (id, stamp) => this.invariants.noteMiss(id, stamp),
    })
    process.close = () => {
      if (isIdle()) this.idle.push(stores)
      else closeBoth(stores)
    }
    const stop = new AbortController()
    const lease = await waitForLease(this.withoutDead(leases), {
      place: new WrittenPlace(),
      holder: process.name,
      wait: true,
      log,
      signal: stop.signal,
    })
    process.epoch = lease.epoch
    const store = fenceStore(faulty, lease)
    const signal = AbortSignal.any([stop.signal, lease.lost])
    const guard = await createDeletionGuard(store, log, letThrough)
    const { billing, documents: source } = createSources(this.model, time, faults, process)
    const references = [...defaultTemplates, ...(this.hasNumbers ? [numberTemplate] : [])]
    const rules = { ...defaultRules, references, isConnected: this.hasDocuments }
    const linking = { rules, guard }
    const nextStamp = createStamps(await store.readLastObserved())
    const common = { store, ...linking, log, signal, nextStamp }
    const connector = await createConnector({ ...common, source: billing })
    const lost = { documents: [], invoices: guard.letThrough('lost_document').map(({ id }) => id) }
    await store.transaction(tx => relinkInvoices(tx, lost, 'deletion_guard', { ...linking, now: Date.now() }))
    const documents = this.hasDocuments
      ? await createDocumentSync({
          ...common,
          source,
          fetchesPerRun: this.fetchesPerRun,
          missesApartMs: roundsApartMs,
        })
      : null
    if (isFull) await connector.forceRelist()
    const questions = [
      ...invoiceQuestions(connector),
      ...(documents === null ? [] : documentQuestions(documents)),
    ]
    const { isListed } = connector
    const rounds = await createRounds(questions, {
      store,
      clocks: realClocks,
      reportStep: () => {},
      isListed,
    })
    if (documents === null)
      rounds.push([every(everyMs.unsettled, realClocks, () => ageClaims(store, linking))])
    process.connector = connector
    await Promise.all(rounds.map(steps => repeat(() => runDue(steps), log, signal)))
    await lease.release()
  }

  /** Leases of processes that are taken for dead seem free: 15 s of silence pass at once. */
  private withoutDead(leases: WriteStore): WriteStore {
    return {
      ...leases,
      readLease: async () => {
        const lease = await leases.readLease()
        return this.deadNames.has(lease.holder ?? '') ? { ...lease, holder: null } : lease
      },
    }
  }

  private onCommit(process: ConnectorProcess): void {
    this.committers.add(process)
    try {
      this.invariants.checkLease(process)
    } catch (error) {
      this.fail(error)
    }
  }

  /** Looks at the store if anything was committed since. */
  private look(): void {
    if (this.failure !== null) throw this.failure
    if (this.committers.size === 0) return
    this.invariants.check([...this.committers])
    this.committers.clear()
  }

  private async step(): Promise<void> {
    const [run] = this.model.draw<[() => Promise<void>]>([
      [40, () => this.releaseSome()],
      [22, () => this.passTime()],
      [20, () => this.changeUpstream()],
      [8, () => this.deliver()],
      [8, () => this.read()],
      [5, () => this.settleDown(1, pick(this.random, [5_000, 61_000, 301_000]))],
      [5, () => this.race()],
      [2, () => this.outrun()],
      [2, () => this.killSome()],
      [2, () => this.restart()],
      [1, () => this.setClock()],
      [2, () => this.operate()],
      ...(this.density === null ? [] : this.denseSteps()),
    ])
    await run()
    await settle()
    for (const process of this.processes) if (process.hasEnded) this.kill(process)
  }

  private denseSteps(): (readonly [number, () => Promise<void>])[] {
    const inOneStep = (step: () => void) => async () => step()
    return [
      [10, inOneStep(() => this.note(changeMany(this.model)))],
      [1.5, inOneStep(() => this.backUp())],
      [1.5, () => this.restore()],
      [this.model.isBlind ? 6 : 1, inOneStep(() => this.turnBlind())],
      [
        0.5,
        async () => {
          this.note('a month passes')
          await this.time.pass(drawLongPause(this.model))
        },
      ],
    ]
  }

  /** The key of the platform sees nothing, until it sees everything again. */
  private turnBlind(isBlind = !this.model.isBlind): void {
    this.model.setBlind(isBlind)
    this.note(isBlind ? 'the key sees nothing' : 'the key sees everything')
  }

  private backUp(): void {
    const { copies } = this.stores
    if (copies === null) return
    this.look()
    copies.backUp()
    this.backup = this.invariants.remember()
    this.note('the store is backed up')
  }

  /** An operator restores the backup while no connector runs, and says so, as with `fatura migrate --restored`. */
  private async restore(): Promise<void> {
    const { copies } = this.stores
    if (copies === null || this.backup === null) return
    this.look()
    for (const process of this.living()) this.kill(process)
    // Until the connections of killed processes are closed.
    await settle()
    copies.restore()
    this.invariants.goBack(this.backup)
    this.followed.clear()
    const stores = await this.stores.openConnector()
    await stores.store.renewLife()
    closeBoth(stores)
    this.note('the backup is restored')
    await this.start()
  }

  private async releaseSome(): Promise<void> {
    const [next] = this.model.draw<[(points: readonly Point[]) => Point | undefined]>([
      [3, points => points[0]],
      [3, points => pick(this.random, points)],
      [2, points => points.at(-1)],
      // Answers that are old by the time that they arrive.
      [
        3,
        points =>
          pick(
            this.random,
            points.filter(({ label }) => !label.endsWith('answer')),
          ),
      ],
    ])
    const most = this.chance(0.6) ? integer(this.random, 1, 5) : integer(this.random, 6, 40)
    for (let left = most; left > 0 && this.failure === null; left--) {
      const point = next(this.time.points)
      if (point === undefined) return
      if (this.chance(0.1)) this.shorten()
      this.note(`${point.process.name}: ${point.label}`)
      await this.time.release(point)
    }
  }

  /** Two answers about one invoice are under way while it changes, as when two webhooks come at once: either may be newer. */
  private async race(): Promise<void> {
    const process = pick(
      this.random,
      this.living().filter(({ connector }) => connector !== null),
    )
    const invoice = this.model.pickOf(
      this.model.some(({ status }) => status === 'draft' || status === 'open'),
    )
    const customer_id = invoice?.states.at(-1)?.customer_id
    if (process === undefined || process.connector === null || !invoice || !customer_id) return
    const { id } = invoice
    this.note(`${process.name}: looks at ${id}, and at ${customer_id}`)
    const runs = [
      () => this.repeat(process, 'invoice.updated', { invoice_id: id, customer_id }),
      () => this.repeat(process, 'customer.updated', { invoice_id: null, customer_id }),
    ]
    if (this.chance(0.3)) runs.reverse()
    for (const run of runs) await run()
    const [point] = this.time.points.slice(-1)
    if (point !== undefined) await this.time.release(point)
    const [step] = this.model.draw<[() => string]>([
      [2, () => this.model.edit(invoice, { status: 'paid' }, 'invoice.paid')],
      [2, () => (this.model.current(invoice)?.status === 'draft' ? this.model.delete(invoice) : 'nothing')],
      [1, () => this.model.edit(invoice, { fits: !this.model.current(invoice)?.fits }, 'invoice.updated')],
      [1, () => this.model.change()],
    ])
    this.time.nowMs++
    this.note(step())
    await this.releaseNewest(({ label }) => !label.endsWith('answer'))
    this.look()
    for (const late of this.time.points.filter(({ label }) => label.endsWith('answer')))
      await this.time.release(late)
  }

  /** The list of a customer's invoices is under way while a draft of it moves to another customer and is deleted there. */
  private async outrun(): Promise<void> {
    const process = pick(
      this.random,
      this.living().filter(({ connector }) => connector !== null),
    )
    const draft = this.model.pickOf(this.model.some(({ status }) => status === 'draft'))
    const from = draft?.states.at(-1)?.customer_id
    const to = customers.find(each => each !== from) as string
    if (process === undefined || !draft || !from) return
    const { id } = draft
    this.note(`${process.name}: lists ${from}, and ${id} goes to ${to}`)
    await this.repeat(process, 'customer.updated', { invoice_id: null, customer_id: from })
    const [question] = this.time.points.slice(-1)
    if (question !== undefined) await this.time.release(question)
    const late = new Set(this.time.points)
    for (const step of [
      () => this.model.edit(draft, { customer_id: to }, 'invoice.updated'),
      () => this.model.delete(draft),
    ]) {
      this.time.nowMs++
      this.note(step())
      await this.repeat(process, 'invoice.updated', { invoice_id: id, customer_id: to })
      await this.releaseNewest(point => !late.has(point))
      this.look()
    }
    for (const point of late) if (this.time.points.includes(point)) await this.time.release(point)
  }

  /** A webhook that comes again, long after the list of events had it. */
  private async repeat(
    process: ConnectorProcess,
    type: string,
    about: Pick<ModelEvent, 'invoice_id' | 'customer_id'>,
  ): Promise<void> {
    const created = Math.floor(this.time.nowMs / 1_000)
    const id = `evt_again_${this.time.nowMs}_${about.invoice_id}`
    await this.time.runAs(process, () => {
      process.connector?.applyNotification({ id, type, created, ...about }).catch(error => this.expect(error))
    })
  }

  /** Calls that wait go on, the newest first. */
  private async releaseNewest(mayGoOn: (point: Point) => boolean): Promise<void> {
    for (let calls = 0; calls < 15 && this.failure === null; calls++) {
      const next = this.time.points.findLast(mayGoOn)
      if (next !== undefined) await this.time.release(next)
    }
  }

  /** A list of documents grows shorter while its later pages are asked for: others move up. */
  private shorten(): void {
    const isPaging = this.time.points.some(({ label }) => /page ([2-9]|\d\d)$/.test(label))
    const newest = this.model.someDocuments(({ isArchived }) => !isArchived).at(-1)
    if (!isPaging || newest === undefined) return
    this.time.nowMs++
    this.note(this.model.editDocument(newest, { isArchived: true }))
  }

  /** Failures of the upstreams and of the store are expected, and no others. */
  private expect(error: unknown): void {
    if (!(error instanceof SourceError || error instanceof StoreError)) this.fail(error)
  }

  private async passTime(): Promise<void> {
    const next = this.time.untilNextTimer() ?? 1_000
    const [milliseconds] = this.model.draw<[number]>([
      [8, next],
      [4, 5_000],
      [3, 61_000],
      [3, 301_000],
      [2, 16 * 60_000],
      [0.5, 2 * 3_600_000],
      [0.3, 25 * 3_600_000],
      [0.1, 31 * dayMs],
    ])
    this.note(`${milliseconds} ms pass`)
    await this.time.pass(milliseconds)
  }

  private async changeUpstream(): Promise<void> {
    for (let left = integer(this.random, 1, 3); left > 0; left--) this.note(this.model.change())
    if (this.chance(0.03)) {
      this.model.aheadS += 86_400
      this.note('the clock of the platform jumps a day ahead')
    }
    // Of many drafts or documents, all but a few may go at once.
    const drafts = this.model.some(({ status }) => status === 'draft')
    if (drafts.length > 22 && this.chance(0.5)) {
      for (const draft of drafts.slice(2)) this.model.delete(draft)
      this.note(`${drafts.length - 2} drafts are deleted`)
      await this.time.pass(5_000)
      await this.settleDown(1, 5_000)
    }
    const documents = this.model.someDocuments(() => true)
    if (documents.length > 22 && this.chance(0.5)) {
      for (const document of documents.slice(2)) this.model.deleteDocument(document)
      this.note(`${documents.length - 2} documents are deleted`)
      // A document counts as gone after two misses that lie apart. Meanwhile some of their invoices move to another customer.
      await this.settleDown(3)
      for (const invoice of this.model.some(() => true).filter(() => this.chance(0.2)))
        this.note(this.model.edit(invoice, { customer_id: pick(this.random, customers) }, 'invoice.updated'))
    }
  }

  /** Webhooks come in any order, twice or never; one that is not taken comes again. */
  private async deliver(): Promise<void> {
    this.undelivered.push(...this.model.events.slice(this.delivered))
    this.delivered = this.model.events.length
    const event = pick(this.random, this.undelivered.slice(-4))
    const process = pick(
      this.random,
      this.living().filter(({ connector }) => connector !== null),
    )
    if (event === undefined || process === undefined || process.connector === null) return
    if (this.chance(0.8)) this.undelivered.splice(this.undelivered.indexOf(event), 1)
    this.note(`${process.name}: webhook ${event.type} ${event.invoice_id ?? event.customer_id}`)
    const { connector } = process
    await this.time.runAs(process, () => {
      connector.applyNotification(event).then(
        () => this.acknowledge(event),
        error => {
          this.expect(error)
          this.undelivered.push(event)
        },
      )
    })
  }

  /** What was acknowledged is stored, or shown as refused. */
  private acknowledge({ invoice_id, rev, type }: ModelEvent): void {
    if (invoice_id === null) return
    try {
      this.invariants.checkAcknowledged(invoice_id, rev)
    } catch (error) {
      this.fail(
        error instanceof Violation
          ? new Violation(`${error.message}, after ${type} was acknowledged`)
          : error,
      )
    }
  }

  private async killSome(): Promise<void> {
    const process = pick(this.random, this.living())
    if (process === undefined) return
    this.note(`${process.name} is killed`)
    this.kill(process)
    if (this.chance(0.8)) await this.start()
  }

  /** Another connector beside those that run: it waits for its turn, or takes over from one that is stuck. */
  private async restart(): Promise<void> {
    if (this.living().length < 2) await this.start()
    const [first] = this.living()
    // Others take it for dead, and it goes on a moment later.
    if (first !== undefined && this.chance(0.5)) {
      this.note(`${first.name} seems dead`)
      this.deadNames.add(first.name)
    }
  }

  private async setClock(): Promise<void> {
    const process = pick(this.random, this.living())
    if (process === undefined || !this.chance(0.3)) return
    this.invariants.isClockSet = true
    process.aheadMs += pick(this.random, [-dayMs, -3_600_000, -5_000, 5_000, 3_600_000, dayMs])
    this.note(`the clock of ${process.name} is ${process.aheadMs} ms ahead`)
  }

  private async operate(): Promise<void> {
    const drawn = this.random()
    if (drawn < 0.15) {
      for (const process of this.living()) this.kill(process)
      await this.start({ letThrough: true })
    } else if (drawn < 0.3) {
      for (const process of this.living()) this.kill(process)
      await this.start({ isFull: true })
    } else await this.showStatus()
  }

  /** `fatura status` and `fatura doctor`: whatever is refused, set aside or held back is counted, and no counter is wrong. */
  private async showStatus(): Promise<void> {
    this.note('status')
    const operator = await this.stores.openOperator()
    try {
      const { setAside, refused, held } = await readState(operator)
      const shown =
        setAside.count +
        refused.reduce((sum, { count }) => sum + count, 0) +
        held.deletion +
        held.lost_document
      const stored = this.invariants.countAside()
      if (shown !== stored) throw new Violation(`status shows ${shown} of ${stored} that are set aside`)
      if (this.hasDocuments) await this.reconcile(operator)
    } finally {
      await operator.close()
    }
  }

  /** As `fatura reconcile`, with its usual tolerance. */
  private async reconcile(operator: OperatorStore): Promise<void> {
    this.look()
    const all = { customer: null, days: null, from: 0, to: Number.POSITIVE_INFINITY }
    for await (const { linked, known, claimants } of readChecked(operator, all, defaultRules)) {
      const { nowMs } = this.time
      const found = findDifferences(linked, known, defaultRules, stripeIdentity, nowMs, claimants)
      const { ix_id } = JSON.parse(linked.summary) as Invoice
      const hasNotes = (known.find(({ id }) => id === ix_id)?.relations ?? null) !== null
      this.invariants.checkDifferences(
        linked,
        found.map(({ kind }) => kind),
        hasNotes,
      )
    }
  }

  /** A customer's pages, sums and details, by either API process. */
  private async read(): Promise<void> {
    const customer = pick(this.random, customers)
    this.note(`read ${customer}`)
    this.look()
    const invoices = await this.listAll(customer)
    const stored = this.invariants.storedRows().filter(({ customer_id }) => customer_id === customer)
    const ids = (all: readonly { id: string }[]) =>
      all
        .map(({ id }) => id)
        .sort()
        .join(' ')
    if (ids(invoices) !== ids(stored))
      throw new Violation(`${customer} lists ${ids(invoices)}, not ${ids(stored)}`)
    await this.get(customer, '/invoices')
    const status = pick(this.random, ['draft', 'open', 'paid', 'void'])
    const some = JSON.parse(
      (await this.get(customer, `/invoices?status=${status}&page_size=2&page=2`)).body,
    ) as InvoiceList
    const matching = invoices.filter(invoice => invoice.status === status)
    const page = matching.length > 2 ? matching.slice(2, 4) : matching
    if (some.total !== matching.length || ids(some.invoices) !== ids(page))
      throw new Violation(
        `${customer} lists ${some.total} ${status}: ${ids(some.invoices)}, not ${ids(page)}`,
      )
    await this.checkSums(customer, invoices)
    await this.checkBalance(customer)
    await this.follow(customer)
    await this.follow(everyone)
    if (this.hasDocuments && this.steps % 3 === 0) await this.showStatus()
    const [invoice] = invoices
    if (invoice !== undefined) await this.get(customer, `/invoice/${invoice.id}`)
    const other = customers.find(each => each !== customer) as string
    if (this.chance(0.8)) return
    const { statusCode } = await this.ask(other, `/invoices`, {
      authorization: `Bearer ${this.tokens.get(customer)}`,
    })
    if (statusCode !== 403)
      throw new Violation(`${other} is read with the token of ${customer}: ${statusCode}`)
  }

  private async listAll(customer: string): Promise<Invoice[]> {
    const all: Invoice[] = []
    for (let page = 1; ; page++) {
      const query = page === 1 ? '' : `&page=${page}`
      const list = await this.get(customer, `/invoices?page_size=50${query}`)
      const { invoices, total } = JSON.parse(list.body) as InvoiceList
      all.push(...invoices)
      if (all.length >= total || invoices.length === 0) return all
    }
  }

  private async checkSums(customer: string, invoices: readonly Invoice[]): Promise<void> {
    const { currencies } = JSON.parse((await this.get(customer, '/summary')).body)
    const sums = new Map<string, [number, number]>()
    for (const { currency, status, total_cents } of invoices) {
      const [count, total] = sums.get(`${currency} ${status}`) ?? [0, 0]
      sums.set(`${currency} ${status}`, [count + 1, total + total_cents])
    }
    const shown = currencies.flatMap(
      ({
        currency,
        statuses,
      }: {
        currency: string
        statuses: { status: string; count: number; total_cents: number }[]
      }) => statuses.map(({ status, count, total_cents }) => `${currency} ${status} ${count} ${total_cents}`),
    )
    const expected = [...sums].map(([key, [count, total]]) => `${key} ${count} ${total}`)
    if (shown.sort().join() !== expected.sort().join())
      throw new Violation(`the sums of ${customer} are ${shown}, not ${expected}`)
  }

  private async checkBalance(customer: string): Promise<void> {
    const balance = JSON.parse((await this.get(customer, '/balance', this.steps)).body) as CustomerBalance
    const { day, currencies } = balance
    const shown = writeBalances(
      currencies.map(({ currency, remaining_cents, count, overdue_cents, credit_cents }) => ({
        ...{ currency, toPay: remaining_cents, count, overdue: overdue_cents, inFavour: credit_cents },
      })),
    )
    const expected = this.invariants.balanceOf(customer, day)
    if (shown !== expected) throw new Violation(`the balance of ${customer} is ${shown}, not ${expected}`)
    const whole = await this.readStatement(customer, '')
    checkStatement(customer, whole, balance)
    const [first] = whole.entries
    if (first === undefined) return
    checkStatement(customer, await this.readStatement(customer, `&from=${first.day}`), balance)
  }

  /** Its last page, where the account ends. */
  private async readStatement(customer: string, period: string): Promise<AccountStatement> {
    const path = `/statement?page_size=50&page=${Number.MAX_SAFE_INTEGER}${period}`
    return JSON.parse((await this.get(customer, path, this.steps)).body)
  }

  /** Reads on in a feed: every invoice that differs from the last time is named, each by what became of it. */
  private async follow(customer: string): Promise<void> {
    let { after, rows: before } = this.followed.get(customer) ?? { after: '0', rows: new Map() }
    const named = new Map<string, string>()
    const authorization = `Bearer ${this.tokens.get(customer)}`
    for (let isAll = false; !isAll; ) {
      const { statusCode, body } = await this.ask(
        customer,
        `/changes?limit=${this.density === null ? 3 : 100}&after=${after}`,
        {
          authorization,
        },
      )
      if (statusCode !== 200) throw new Violation(`the feed of ${customer} after ${after}: ${body}`)
      const { changes, next } = JSON.parse(body) as ChangeList
      for (const { customer_id, invoice_id, kind } of changes)
        named.set(keyOf({ customer_id, id: invoice_id }), kind)
      after = next
      isAll = changes.length === 0
    }
    const stored = this.invariants.storedRows().filter(row => [row.customer_id, everyone].includes(customer))
    const rows = new Map(stored.map(row => [keyOf(row), `${row.summary} ${row.lines}`]))
    for (const key of new Set([...before.keys(), ...rows.keys()]))
      if (before.get(key) !== rows.get(key) && !named.has(key))
        throw new Violation(`${key} changed, and the feed of ${customer} does not name it`)
    for (const [key, kind] of named)
      if ((kind === 'deleted') === rows.has(key))
        throw new Violation(`the feed of ${customer} ends with ${key} ${kind}`)
    this.followed.set(customer, { after, rows })
  }

  private ask(
    customer: string,
    path: string,
    headers: Record<string, string>,
    app = pick(this.random, this.apps),
  ) {
    if (app === undefined) throw new Error('there is an API')
    const scope = customer === everyone ? '' : `/client/${customer}`
    return app.inject({ method: 'GET', url: `/api/v1${scope}${path}`, headers })
  }

  /** The same ETag means the same body; a 304 means that the body held is the current one. With `turn`, nothing is drawn. */
  private async get(customer: string, path: string, turn?: number): Promise<{ body: string }> {
    const app = turn === undefined ? undefined : this.apps[turn % this.apps.length]
    const authorization = `Bearer ${this.tokens.get(customer)}`
    const answer = await this.ask(customer, path, { authorization }, app)
    if (answer.statusCode !== 200)
      throw new Violation(`${customer}${path}: ${answer.statusCode} ${answer.body}`)
    const name = `${customer}${path} `
    const key = name + answer.headers.etag
    const held = this.bodies.get(key)
    if (held !== undefined && held !== answer.body)
      throw new Violation(`${key} has two bodies: ${held} and ${answer.body}`)
    this.bodies.set(key, answer.body)
    if (turn === undefined ? this.chance(0.5) : turn % 4 < 2) return answer
    const earlier = [...this.bodies.keys()].findLast(each => each.startsWith(name)) as string
    const headers = { authorization, 'if-none-match': earlier.slice(name.length) }
    const conditional = await this.ask(customer, path, headers, app)
    if (conditional.statusCode === 304 && this.bodies.get(earlier) !== answer.body)
      throw new Violation(`304 for ${earlier}, though the body differs`)
    return answer
  }

  /** Everything that waits goes on, again and again as time passes. */
  private async settleDown(rounds: number, milliseconds = 301_000): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      for (let calls = 0; this.failure === null; calls++) {
        const [point] = this.time.points
        if (point !== undefined) {
          this.note(`${point.process.name}: ${point.label}`)
          await this.time.release(point)
        } else if ((this.time.untilNextTimer() ?? 1) === 0) await this.time.pass(0)
        else break
        if (calls > 20_000) throw new Violation('it never comes to rest')
      }
      this.look()
      await this.time.pass(milliseconds)
    }
  }

  /** With the faults over, the store follows its sources within a bounded number of rounds. */
  private async converge(): Promise<void> {
    this.note('the faults are over')
    this.faults.sourceRate = this.faults.storeRate = 0
    if (this.model.isBlind) this.turnBlind(false)
    for (const document of this.model.someDocuments(({ fits }) => !fits))
      this.model.editDocument(document, { fits: true })
    for (const process of this.living()) process.aheadMs = 0
    if (this.chance(0.3)) for (const process of this.living()) this.kill(process)
    const isLarge = this.model.invoices.size > 20
    if (isLarge) {
      for (const process of this.living()) this.kill(process)
      await this.start({ letThrough: true })
    }
    // Time for a lease to be taken over, for two misses of a document, for a list of everything, and for what these led to.
    for (const seconds of [16, 16, 960, 301, 25 * 3_600, 301, 301, 301]) {
      if (this.living().length === 0) await this.start()
      if (seconds > 86_400) this.invariants.checkUnsettled()
      await this.settleDown(1, seconds * 1_000)
    }
    this.look()
    this.invariants.checkConverged(this.hasDocuments)
    await this.showStatus()
    for (const customer of customers) this.note(`read ${customer}`)
    await this.read()
  }
}
