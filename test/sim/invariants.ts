/** The invariants of a store, held against the models after every commit and, in the end, for equality. */
import { DatabaseSync } from 'node:sqlite'
import type { AccountStatement } from '../../src/domain/account.ts'
import type { CustomerBalance } from '../../src/domain/balance.ts'
import { dayMs } from '../../src/domain/calendar.ts'
import type { Claim, Document } from '../../src/domain/document.ts'
import {
  type Invoice,
  type InvoiceDocument,
  type InvoiceKey,
  keyOf,
  type SyncState,
} from '../../src/domain/invoice.ts'
import { serializeLines, serializeSummary } from '../../src/domain/invoice-json.ts'
import { fieldsOf, type LinkFields } from '../../src/domain/link/link.ts'
import type { PaymentFacts } from '../../src/domain/payment.ts'
import type { Loss } from '../../src/store/connector-store.ts'
import type { LinkedInvoice } from '../../src/store/document-store.ts'
import {
  type Charge,
  chargeIn,
  chargeOf,
  differencesOf,
  eurosOf,
  factsOf,
  inFavourOf,
  moneyKinds,
} from './money.ts'
import {
  type DocumentState,
  type InvoiceState,
  type ModelDocument,
  type ModelInvoice,
  revOf,
  toInvoice,
  toLines,
  type Upstreams,
} from './upstreams.ts'
import type { VirtualTime } from './virtual-time.ts'

export class Violation extends Error {}

/** A document counts as gone after this many answers in a row that it is. */
const missesToBelieve = 2
const creatingTimeoutMs = 3_600_000
/** A miss counts only so long after the last one. */
const missesApartMs = 4 * 60_000
/** Drafts, or documents of invoices, that may disappear within an hour without an operator: this number, or a tenth of them. */
const lossesFreely = 20
/** Documents dated so many days ago are read in each round over recent ones. */
const recentDays = 3
/** Span of the guard's count, from its first loss on. A loss may be tried long before it is stored: half a span is compared. */
const guardSpanMs = 3_600_000
const stages: Record<string, number> = { draft: 0, open: 1, uncollectible: 2, paid: 3, void: 3 }

interface Row {
  customer_id: string
  id: string
  issued_at: number
  status: string
  ix_status: string | null
  currency: string
  total_cents: number
  /** What is owed on it and was paid, and of it what is summed. */
  payment: string
  due_date: string | null
  to_pay_cents: number
  in_favour_cents: number
  /** Its document as it is sent, and its credit notes in force. */
  document: string | null
  credited_cents: number
  summary: string
  observed_stamp: number
  lines: string | null
  tied: number | null
  claimed: number | null
}

interface SeenRow extends Row {
  invoice: Invoice
  /** The place of its state among those of the model's invoice. */
  place: number
}

interface DocumentRow {
  id: number
  status: string | null
  body: string | null
  misses: number
  observed_stamp: number
  /** Of its client when it was issued, as far as it was read: empty for none. */
  client_tax_id: string | null
}

interface StreamRow {
  name: string
  succeeded_at: number | null
}

/** Sees commits of the process that the lease belongs to. */
export interface Committer {
  name: string
  /** Null before it holds the lease. */
  epoch: number | null
  /** Whether an operator let held-back losses through. */
  letThrough: boolean
  /** Drafts that were deleted, and invoices that lost a document that is gone, with the true times of the first and the last. */
  losses: Record<Loss, { firstMs: number; lastMs: number; ids: Set<string> }>
}

/** The tables of a store, as they were last committed. */
export function openTables(path: string) {
  const db = new DatabaseSync(path, { readOnly: true })
  const statements = {
    changed: db.prepare(
      `SELECT last_stamp || ' ' || (SELECT coalesce(sum(version), 0) FROM customers) || ' '
       || (SELECT coalesce(group_concat(name || coalesce(succeeded_at, '')), '') FROM streams) || ' '
       || (SELECT count(*) || ' ' || coalesce(sum(tries), 0) FROM set_aside) AS text FROM observation`,
    ),
    invoices: db.prepare(
      `SELECT invoices.customer_id, id, issued_at, status, ix_status, currency, total_cents, summary, observed_stamp,
         payment, due_date, to_pay_cents, in_favour_cents, document, credited_cents, lines, links.ix_id AS tied, links.claimed_id AS claimed
       FROM invoices
       LEFT JOIN invoice_lines ON invoice_lines.customer_id = invoices.customer_id AND invoice_lines.invoice_id = id
       LEFT JOIN links ON links.customer_id = invoices.customer_id AND links.invoice_id = id`,
    ),
    summary: db.prepare('SELECT summary FROM invoices WHERE id = ?'),
    documents: db.prepare('SELECT id, status, body, misses, observed_stamp, client_tax_id FROM documents'),
    relations: db.prepare('SELECT id FROM document_relations WHERE relations IS NOT NULL'),
    customers: db.prepare('SELECT customer_id, total, counted FROM customers'),
    counts: db.prepare('SELECT customer_id, month, status, currency, ix, n, total_cents FROM counters'),
    streams: db.prepare('SELECT name, succeeded_at FROM streams'),
    freshness: db.prepare('SELECT synced_at FROM freshness'),
    aside: db.prepare('SELECT system, kind, id FROM set_aside'),
    lease: db.prepare('SELECT holder, epoch FROM lease'),
    tombstones: db.prepare('SELECT customer_id, id FROM tombstones'),
    clients: db.prepare('SELECT id, tax_id, observed_stamp FROM document_clients WHERE observed_stamp > 0'),
  }
  return { statements, close: () => db.close() }
}
export type Tables = ReturnType<typeof openTables>

const moneyOf = ({ payment, document, due_date, to_pay_cents, in_favour_cents, credited_cents }: Row) =>
  [payment, document, due_date, to_pay_cents, in_favour_cents, credited_cents].join('\n')

/** What is stored of the payment belongs to the state that is shown. */
function checkFacts({ id, status, payment, due_date, to_pay_cents }: Row, facts: PaymentFacts): void {
  if (payment !== JSON.stringify(facts)) throw new Violation(`${id} is stored with the payment ${payment}`)
  const toPay = status === 'open' ? facts.amount_remaining_cents : 0
  if (to_pay_cents !== toPay || due_date !== facts.due_date)
    throw new Violation(`of ${id}, ${to_pay_cents} is to be paid by ${due_date}`)
}

/** Amounts in euros, with the invoice's currency beside, before the tax withheld and after. */
function checkShown({ id, document }: Row, charge: Charge | null, hasNotes: boolean): void {
  if ((document === null) !== (charge === null)) throw new Violation(`${id} shows the document ${document}`)
  if (document === null || charge === null) return
  const shown = JSON.parse(document) as InvoiceDocument
  const { gross, taxes, withheld, total } = eurosOf(charge)
  const amounts = [
    ...[shown.currency, shown.gross_cents, shown.before_tax_cents, shown.tax_cents, shown.total_cents],
    ...[shown.retention_cents ?? 0, shown.in_invoice_currency?.total_cents ?? null],
  ]
  const foreign = charge.currency === 'eur' ? null : charge.cents
  const expected = ['eur', gross, gross - taxes, taxes, total, withheld, foreign]
  if (amounts.join() !== expected.join()) throw new Violation(`${id} shows ${amounts}, not ${expected}`)
  if ((shown.related !== null) !== hasNotes)
    throw new Violation(`${id} shows the documents about ${shown.id} as ${JSON.stringify(shown.related)}`)
}

/** A tax ID that is corrected later leaves what was issued as it is. */
const asIssued = (whenIssued: string | null, ofToday: string | null) =>
  whenIssued === null ? ofToday : whenIssued || null

/** A client's moment until its documents are linked by its tax ID, in transactions of their own. */
const beingLinked = 1
const isBeingLinked = (taxIds: ReadonlyMap<unknown, unknown>, clientId: number | null) =>
  taxIds.has(clientId) && taxIds.get(clientId) === undefined

/** What was seen of a store: kept with its backup. */
export interface Seen {
  rows: ReadonlyMap<string, SeenRow>
  documents: ReadonlyMap<number, DocumentRow & { place: number }>
  stages: ReadonlyMap<string, number>
  missedAt: ReadonlyMap<number, readonly number[]>
  vanished: ReadonlySet<string>
}

/** By a name, the stored invoices that have it. */
interface NamedRows {
  payments: ReadonlyMap<string, readonly SeenRow[]>
  numbers: ReadonlyMap<string, readonly SeenRow[]>
}

type Balance = { currency: string; toPay: number; count: number; overdue: number; inFavour: number }

export function writeBalances(balances: readonly Balance[]): string {
  return balances
    .map(({ currency, toPay, count, overdue, inFavour }) =>
      [currency, toPay, count, overdue, inFavour].join(' '),
    )
    .sort()
    .join('; ')
}

/** By each currency, a customer's account ends with what the balance shows; so does the last of its entries, where the page has one. */
export function checkStatement(
  customer: string,
  { from, currencies, entries }: Pick<AccountStatement, 'from' | 'currencies' | 'entries'>,
  balance: CustomerBalance,
): void {
  const last = new Map(entries.map(({ currency, balance_cents }) => [currency, balance_cents]))
  const owed = balance.currencies.map(
    ({ currency, remaining_cents, credit_cents }) => [currency, remaining_cents - credit_cents] as const,
  )
  const shown = new Map(currencies.map(({ currency, closing_cents }) => [currency, closing_cents]))
  for (const [currency, expected] of new Map([
    ...[...shown.keys()].map(code => [code, 0] as const),
    ...owed,
  ])) {
    const ends = [shown.get(currency) ?? 0, last.get(currency) ?? expected]
    if (ends.some(cents => cents !== expected))
      throw new Violation(
        `the statement of ${customer} from ${from} ends with ${ends} ${currency}, and the balance is ${expected}`,
      )
  }
}

export class Invariants {
  private readonly model: Upstreams
  private readonly time: VirtualTime
  /** Whether a calendar was ever set. */
  isClockSet = false
  private rows = new Map<string, SeenRow>()
  private stagesSeen = new Map<string, number>()
  /** Stamps of the answers that a document is not there. */
  private missedAt = new Map<number, readonly number[]>()
  private vanished = new Set<string>()
  private readonly names = new WeakMap<ReadonlyMap<string, SeenRow>, NamedRows>()
  private documents = new Map<number, DocumentRow & { place: number }>()
  private readonly statements: Tables['statements']
  private readonly hasNumbers: boolean
  private lastChanged = ''

  constructor({ statements }: Tables, model: Upstreams, time: VirtualTime, hasNumbers: boolean) {
    this.statements = statements
    this.model = model
    this.time = time
    this.hasNumbers = hasNumbers
  }

  /** With `goBack`: for a store that is backed up and restored. */
  remember(): Seen {
    const { rows, documents, stagesSeen, missedAt, vanished } = this
    return {
      ...{ rows, documents, stages: new Map(stagesSeen) },
      ...{ missedAt: new Map(missedAt), vanished: new Set(vanished) },
    }
  }

  goBack({ rows, documents, stages, missedAt, vanished }: Seen): void {
    this.rows = new Map(rows)
    this.documents = new Map(documents)
    this.stagesSeen = new Map(stages)
    this.missedAt = new Map(missedAt)
    this.vanished = new Set(vanished)
    this.lastChanged = ''
  }

  storedRows(): readonly SeenRow[] {
    return [...this.rows.values()]
  }

  /** Right after a commit. */
  checkLease({ name, epoch }: Committer): void {
    const lease = this.statements.lease.get() as { epoch: number }
    if (epoch !== null && lease.epoch !== epoch) throw new Violation(`${name} committed without the lease`)
  }

  /** Looks at the whole store, which these processes changed since the last time. */
  check(committers: readonly Committer[]): void {
    const changed = String(this.statements.changed.get()?.text)
    if (changed === this.lastChanged) return
    this.lastChanged = changed
    const rows = this.readRows()
    this.checkLosses(rows)
    const documents = this.readDocuments()
    this.checkGuard(rows, documents, committers)
    this.checkLinks(rows, documents)
    this.checkOwners(rows, documents)
    this.checkCharges(rows, documents)
    this.checkNames(rows, documents)
    this.checkCounts(rows)
    this.checkAside()
    this.rows = rows
    this.documents = documents
    this.checkFreshness()
    if (!this.isClockSet) this.checkDocumentStreams()
  }

  private readRows(): Map<string, SeenRow> {
    const rows = new Map<string, SeenRow>()
    const documents = new Map<number, string>()
    for (const row of this.statements.invoices.all() as unknown as Row[]) {
      if (rows.has(row.id)) throw new Violation(`${row.id} is stored for two customers`)
      const before = this.rows.get(row.id)
      const isSame =
        before !== undefined &&
        before.summary === row.summary &&
        before.observed_stamp === row.observed_stamp &&
        before.lines === row.lines &&
        before.tied === row.tied &&
        before.claimed === row.claimed &&
        moneyOf(before) === moneyOf(row)
      if (before !== undefined && row.observed_stamp < before.observed_stamp)
        throw new Violation(`${row.id} was replaced by an older answer`)
      const seen = isSame ? before : this.checkRow(row)
      rows.set(row.id, seen)
      const { ix_id } = seen.invoice
      if (ix_id === null) continue
      const other = documents.get(ix_id)
      if (other !== undefined) throw new Violation(`document ${ix_id} is reachable by ${other} and ${row.id}`)
      documents.set(ix_id, row.id)
    }
    return rows
  }

  /** A row is a state that the platform had since its stamp, and its columns say the same. */
  private checkRow(row: Row): SeenRow {
    const { id } = row
    const invoice = JSON.parse(row.summary) as Invoice
    const model = this.model.invoices.get(id)
    const place = model?.states.findIndex(({ rev }) => rev === revOf(invoice.customer_name)) ?? -1
    const state = model?.states[place]
    if (model === undefined || state === undefined)
      throw new Violation(`${id} is a state that never was: ${row.summary}`)
    const { ix_sync_state, ix_id, ix_status, ix_created_at } = invoice
    const expected = {
      ...toInvoice(model, state),
      ...{ ix_sync_state, ix_id, ix_status, ix_created_at },
      customer_id: state.customer_id ?? row.customer_id,
    }
    if (serializeSummary(expected) !== row.summary || row.customer_id !== invoice.customer_id)
      throw new Violation(`${id} differs from its state r${state.rev}: ${row.summary}`)
    const lines = toLines(state)
    if ((lines === null ? null : serializeLines(lines)) !== row.lines)
      throw new Violation(`the lines of ${id} are not those of r${state.rev}: ${row.lines}`)
    const columns = [
      Date.parse(invoice.issued_at),
      invoice.status,
      ix_status,
      invoice.currency,
      invoice.total_cents,
    ]
    if (
      JSON.stringify(columns) !==
      JSON.stringify([row.issued_at, row.status, row.ix_status, row.currency, row.total_cents])
    )
      throw new Violation(`the columns of ${id} differ from its summary`)
    checkFacts(row, factsOf(model, state))
    if (row.tied !== ix_id) throw new Violation(`${id} is tied to ${row.tied} and shows ${ix_id}`)
    const askedMs = this.time.trueTimeOf(Math.floor(row.observed_stamp / 1000))
    if (askedMs !== null && state.untilMs <= askedMs)
      throw new Violation(
        `${id} is r${state.rev}, which ended ${askedMs - state.untilMs} ms before its stamp`,
      )
    if (this.vanished.has(id)) throw new Violation(`${id} was deleted and came back`)
    const stage = stages[row.status] ?? 0
    if (stage < (this.stagesSeen.get(id) ?? 0)) throw new Violation(`${id} went back to ${row.status}`)
    this.stagesSeen.set(id, stage)
    return { ...row, invoice, place }
  }

  /** Only what is deleted disappears. */
  private checkLosses(rows: Map<string, SeenRow>): void {
    const lost = [...this.rows.values()].filter(({ id }) => !rows.has(id))
    if (lost.length === 0) return
    const tombstones = new Set((this.statements.tombstones.all() as unknown as InvoiceKey[]).map(keyOf))
    for (const { id, customer_id, status, place } of lost) {
      const { deletedMs, states, wasHidden } = this.model.invoices.get(id) as ModelInvoice
      // The platform said that it is gone, and may show it again.
      if (wasHidden && status === 'draft') continue
      if (deletedMs === Number.POSITIVE_INFINITY) throw new Violation(`${id} disappeared, and is not deleted`)
      if (status !== 'draft') throw new Violation(`${id} disappeared, and was ${status}`)
      // Between two looks, it may have moved to another customer before it was deleted.
      const owners = [customer_id, ...states.slice(place + 1).flatMap(state => state.customer_id ?? [])]
      if (!owners.some(owner => tombstones.has(keyOf({ customer_id: owner, id }))))
        throw new Violation(`${id} was deleted without a tombstone`)
      this.vanished.add(id)
    }
  }

  /** Neither drafts nor documents of invoices disappear in large numbers without an operator. */
  private checkGuard(
    rows: Map<string, SeenRow>,
    documents: typeof this.documents,
    committers: readonly Committer[],
  ): void {
    const [committer, ...others] = committers
    if (committer === undefined || others.length > 0 || committer.letThrough) return
    const before = [...this.rows.values()]
    const isGone = (id: number) => (documents.get(id)?.misses ?? 0) >= missesToBelieve
    const atRisk = {
      deletion: before.filter(({ status }) => status === 'draft'),
      lost_document: before.filter(({ invoice }) => invoice.ix_id !== null),
    }
    const lost = {
      deletion: before.filter(({ id }) => !rows.has(id)),
      // Another claim or another state is decided anew: by its names, the invoice may have had a third document meanwhile.
      lost_document: atRisk.lost_document.filter(({ id, invoice, claimed, place }) => {
        const after = rows.get(id)
        const isSame = after?.claimed === claimed && after.place === place
        return isSame && after.invoice.ix_id === null && isGone(invoice.ix_id as number)
      }),
    }
    const { nowMs } = this.time
    for (const loss of ['deletion', 'lost_document'] as const) {
      if (lost[loss].length === 0) continue
      const losses = committer.losses[loss]
      if (nowMs - losses.lastMs > guardSpanMs) Object.assign(losses, { firstMs: nowMs, ids: new Set() })
      losses.lastMs = nowMs
      for (const { id } of lost[loss]) losses.ids.add(id)
      const most = Math.max(lossesFreely, Math.ceil((atRisk[loss].length + losses.ids.size) * 0.1))
      if (nowMs - losses.firstMs < guardSpanMs / 2 && losses.ids.size > most)
        throw new Violation(`${losses.ids.size} losses within an hour by ${loss}`)
    }
  }

  private readDocuments(): typeof this.documents {
    const documents: typeof this.documents = new Map()
    for (const row of this.statements.documents.all() as unknown as DocumentRow[]) {
      const before = this.documents.get(row.id)
      const isSame =
        before?.observed_stamp === row.observed_stamp &&
        before.misses === row.misses &&
        before.body === row.body &&
        before.client_tax_id === row.client_tax_id
      if (before !== undefined && row.observed_stamp < before.observed_stamp)
        throw new Violation(`document ${row.id} was replaced by an older answer`)
      documents.set(row.id, isSame ? before : this.checkDocument(row, before))
    }
    return documents
  }

  /** A document is about to be stored as missed, by an answer with this stamp. */
  noteMiss(id: number, stamp: number): void {
    this.missedAt.set(id, [...(this.missedAt.get(id) ?? []), stamp])
  }

  private checkDocument(row: DocumentRow, before: { place: number } | undefined) {
    const { id, misses, body } = row
    const model = this.model.documents.get(id)
    const askedMs = this.time.trueTimeOf(Math.floor(row.observed_stamp / 1000))
    if (misses > 0) {
      if (model !== undefined && model.deletedMs === Number.POSITIVE_INFINITY)
        throw new Violation(`document ${id} counts as missed, and is there`)
      const stamps = this.missedAt.get(id) ?? []
      const apartMs = (Math.max(...stamps) - Math.min(...stamps)) / 1000
      if (misses >= missesToBelieve && apartMs < missesApartMs && !this.isClockSet)
        throw new Violation(`document ${id} was missed twice within ${apartMs} ms`)
      return { ...row, place: before?.place ?? -1 }
    }
    const document = JSON.parse(String(body)) as Document
    const place = Number(document.number?.slice(1))
    const state = model?.states[place]
    const isState =
      state?.status === document.status &&
      state.reference === document.reference &&
      state.uid === (document.uid ?? null)
    if (state === undefined || !isState)
      throw new Violation(`document ${id} is a state that never was: ${body}`)
    if (askedMs !== null && state.untilMs <= askedMs)
      throw new Violation(
        `document ${id} is d${place}, which ended ${askedMs - state.untilMs} ms before its stamp`,
      )
    this.missedAt.set(
      id,
      (this.missedAt.get(id) ?? []).filter(stamp => stamp > row.observed_stamp),
    )
    return { ...row, place }
  }

  /** The rows agree with the stored documents. */
  private checkLinks(rows: Map<string, SeenRow>, documents: typeof this.documents): void {
    for (const { id, invoice } of rows.values()) {
      const { ix_id, ix_status, ix_sync_state } = invoice
      if ((ix_id === null) !== (ix_sync_state !== 'synced') || (ix_id === null) !== (ix_status === null))
        throw new Violation(`${id} is ${ix_sync_state} with document ${ix_id} ${ix_status}`)
      const stored = documents.get(ix_id ?? -1)
      if (ix_id !== null && stored?.status !== ix_status)
        throw new Violation(
          `${id} shows document ${ix_id} as ${ix_status}, and it is stored as ${stored?.status}`,
        )
      const last = this.rows.get(id)?.invoice.ix_id ?? null
      const lost = ix_id === null && last !== null ? documents.get(last) : undefined
      const reference = lost?.body ? (JSON.parse(lost.body) as Document).reference : null
      if (lost?.misses === 1 && reference === id)
        throw new Violation(`${id} lost document ${last}, which was missed once`)
    }
  }

  /** A document that names no invoice is shown by the first of those that claim it. */
  private checkOwners(rows: Map<string, SeenRow>, documents: typeof this.documents): void {
    const byClaim = Map.groupBy(rows.values(), ({ claimed }) => claimed)
    byClaim.delete(null)
    const taxIds = this.readTaxIds()
    for (const [id, claimants] of byClaim) {
      const stored = documents.get(id ?? -1)
      if (!stored?.body || stored.misses > 0) continue
      const { reference, uid = null, client_id } = JSON.parse(stored.body) as Document
      if (isBeingLinked(taxIds, client_id)) continue
      const isTaxed = client_id !== null && claimants.some(({ invoice }) => invoice.customer_tax_id !== null)
      const clientTaxId = asIssued(stored.client_tax_id, taxIds.get(client_id) ?? null)
      if (isTaxed || this.namedBy({ reference, uid }, clientTaxId, rows).length > 0) continue
      const [first] = claimants.toSorted((a, b) => a.issued_at - b.issued_at || (a.id < b.id ? -1 : 1))
      if (first !== undefined && first.invoice.ix_id !== id)
        throw new Violation(`document ${id} is claimed by ${first.id}, which shows ${first.invoice.ix_id}`)
    }
  }

  /** The document that an invoice shows has the amounts of its own state, and its own credit notes. */
  private checkCharges(rows: Map<string, SeenRow>, documents: typeof this.documents): void {
    const read = new Set(this.statements.relations.all().map(({ id }) => Number(id)))
    for (const row of rows.values()) {
      const { ix_id } = row.invoice
      const model = this.model.documents.get(ix_id ?? -1)
      const charge = model && documents.has(model.id) ? chargeOf(this.model, model) : null
      const hasNotes = charge !== null && read.has(ix_id ?? -1)
      const inCurrency = charge && chargeIn(charge, row.currency)
      const credited = hasNotes ? (inCurrency?.credited ?? 0) : 0
      checkShown(row, charge, hasNotes)
      const invoice = this.model.invoices.get(row.id) as ModelInvoice
      const state = invoice.states[row.place] as InvoiceState
      const inFavour = inFavourOf(state, factsOf(invoice, state), credited)
      if (row.credited_cents !== credited || row.in_favour_cents !== inFavour)
        throw new Violation(
          `${row.id} is credited ${row.credited_cents}, not ${credited}, with ${row.in_favour_cents} in favour, not ${inFavour}`,
        )
    }
  }

  /** What a customer has to pay and has in its favour, by currency; what is overdue on this day. */
  balanceOf(customer: string, day: string): string {
    const sums = new Map<string, { toPay: number; count: number; overdue: number; inFavour: number }>()
    for (const { id, place, customer_id, currency, status, in_favour_cents } of this.rows.values()) {
      if (customer_id !== customer || status !== 'open') continue
      const model = this.model.invoices.get(id) as ModelInvoice
      const { amount_remaining_cents: toPay, due_date } = factsOf(model, model.states[place] as InvoiceState)
      const sum = sums.get(currency) ?? { toPay: 0, count: 0, overdue: 0, inFavour: 0 }
      sums.set(currency, {
        toPay: sum.toPay + toPay,
        count: sum.count + (toPay > 0 ? 1 : 0),
        overdue: sum.overdue + (due_date !== null && due_date < day ? toPay : 0),
        inFavour: sum.inFavour + in_favour_cents,
      })
    }
    return writeBalances([...sums].map(([currency, sum]) => ({ currency, ...sum })))
  }

  /** What a reconciliation finds of an invoice's money is what the models say, no more and no less. */
  checkDifferences({ id, summary }: LinkedInvoice, found: readonly string[], hasNotes: boolean): void {
    const invoice = JSON.parse(summary) as Invoice
    const model = this.model.invoices.get(id) as ModelInvoice
    const state = model.states.find(({ rev }) => rev === revOf(invoice.customer_name)) as InvoiceState
    const document = this.model.documents.get(invoice.ix_id ?? -1)
    const stored = this.documents.get(invoice.ix_id ?? -1)
    const place = stored?.body ? Number((JSON.parse(stored.body) as Document).number?.slice(1)) : -1
    const its = document?.states[place]
    const expected =
      document === undefined || its === undefined
        ? []
        : differencesOf(state, factsOf(model, state), chargeOf(this.model, document), its, hasNotes)
    const shown = [...new Set(found.filter(kind => moneyKinds.includes(kind)))].sort()
    if (shown.join() !== expected.join())
      throw new Violation(`${id} with document ${invoice.ix_id} differs by ${shown}, not by ${expected}`)
  }

  /** An invoice shows a document that it claims or that names it alone, and one whom a document names alone shows one. */
  private checkNames(rows: Map<string, SeenRow>, documents: typeof this.documents): void {
    const held = this.readAside(true)
    const taxIds = this.readTaxIds()
    const showing = new Map([...rows.values()].map(row => [row.invoice.ix_id, row]))
    for (const { id, body, misses, client_tax_id } of documents.values()) {
      if (!body) continue
      const { reference, uid = null, client_id } = JSON.parse(body) as Document
      if (isBeingLinked(taxIds, client_id)) continue
      const taxId = asIssued(client_tax_id, taxIds.get(client_id) ?? null)
      const named = this.namedBy({ reference, uid }, taxId, rows)
      const shown = showing.get(id)
      if (shown !== undefined && shown.claimed !== id && named.join() !== shown.id && !held.has(shown.id))
        throw new Violation(
          `${shown.id} shows document ${id}, which names ${named.join(' and ') || 'nothing'}`,
        )
      const [only, ...others] = named
      const row = others.length === 0 ? rows.get(only ?? '') : undefined
      if (misses === 0 && row !== undefined && row.invoice.ix_id === null && !held.has(row.id))
        throw new Violation(`${row.id} shows no document, and ${id} names it by ${reference} or ${uid}`)
    }
  }

  /** Of clients, as they are stored; undefined while the documents of one are being linked by a new tax ID. */
  private readTaxIds(): Map<unknown, string | null | undefined> {
    const clients = this.statements.clients.all()
    return new Map(
      clients.map(({ id, tax_id, observed_stamp }) => [
        id,
        observed_stamp === beingLinked ? undefined : (tax_id as string | null),
      ]),
    )
  }

  /** Invoices by their payments, and by their numbers. */
  private namesOf(rows: ReadonlyMap<string, SeenRow>): NamedRows {
    const known = this.names.get(rows)
    if (known !== undefined) return known
    const payments = new Map<string, SeenRow[]>()
    const numbers = new Map<string, SeenRow[]>()
    const add = (named: Map<string, SeenRow[]>, name: string, row: SeenRow) => {
      const all = named.get(name)
      if (all === undefined) named.set(name, [row])
      else if (!all.includes(row)) all.push(row)
    }
    for (const row of rows.values()) {
      const state = this.model.invoices.get(row.id)?.states[row.place]
      for (const payment of state?.payments ?? []) add(payments, payment, row)
      if (state?.number) add(numbers, state.number, row)
    }
    this.names.set(rows, { payments, numbers })
    return { payments, numbers }
  }

  /** The invoices that a document names, by the words of the convention; written without a look at the code that does the same. */
  private namedBy(
    { reference, uid }: { reference: string | null; uid: string | null },
    clientTaxId: string | null,
    rows: ReadonlyMap<string, SeenRow>,
  ): string[] {
    if (reference?.startsWith('in_')) return [reference]
    if (uid?.startsWith('in_')) return [uid]
    const texts = [...new Set([reference, uid])].filter(text => text !== null)
    const { payments, numbers } = this.namesOf(rows)
    const paid = new Set(texts.flatMap(text => payments.get(text) ?? []))
    if (paid.size > 0 || !this.hasNumbers || clientTaxId === null) return [...paid].map(({ id }) => id)
    const numbered = new Set(texts.flatMap(text => numbers.get(text) ?? []))
    return [...numbered].filter(row => this.stateOf(row)?.tax_id === clientTaxId).map(({ id }) => id)
  }

  private stateOf({ id, place }: SeenRow): InvoiceState | undefined {
    return this.model.invoices.get(id)?.states[place]
  }

  /** Totals and counters equal a recount. */
  private checkCounts(rows: Map<string, SeenRow>): void {
    const byCustomer = Map.groupBy(rows.values(), ({ customer_id }) => customer_id)
    const kept = Map.groupBy(this.statements.counts.all() as Record<string, unknown>[], row =>
      String(row.customer_id),
    )
    const customers = this.statements.customers.all() as unknown as {
      customer_id: string
      total: number
      counted: number
    }[]
    const known = new Set(customers.map(({ customer_id }) => customer_id))
    for (const id of byCustomer.keys())
      if (!known.has(id)) throw new Violation(`${id} has invoices and no total`)
    for (const { customer_id, total, counted } of customers) {
      const its = byCustomer.get(customer_id) ?? []
      if (total !== its.length)
        throw new Violation(`the total of ${customer_id} is ${total}, not ${its.length}`)
      const expected = new Map<string, [number, bigint]>()
      if (counted === 1)
        for (const { issued_at, status, currency, ix_status, total_cents } of its) {
          const key = [
            new Date(issued_at).toISOString().slice(0, 7),
            status,
            currency,
            ix_status === null ? '-' : `=${ix_status}`,
          ].join(' ')
          const [n, sum] = expected.get(key) ?? [0, 0n]
          expected.set(key, [n + 1, sum + BigInt(total_cents)])
        }
      const found = new Map(
        (kept.get(customer_id) ?? []).map(({ month, status, currency, ix, n, total_cents }) => [
          `${month} ${status} ${currency} ${ix}`,
          [Number(n), BigInt(Number(total_cents))],
        ]),
      )
      const write = (map: Map<string, unknown>) =>
        [...map]
          .map(([key, value]) => `${key}=${value}`)
          .sort()
          .join('; ')
      if (write(found) !== write(expected))
        throw new Violation(`the counters of ${customer_id} are ${write(found)}, not ${write(expected)}`)
    }
  }

  /** Ids of records that are set aside; those that the deletion guard holds back, the others, or both. */
  private readAside(isHeld?: boolean): Set<string | undefined> {
    const all = this.statements.aside.all() as { system: string; id: string }[]
    const some = all.filter(({ system }) => [undefined, system === 'deletion_guard'].includes(isHeld))
    // The guard's begin with the customer.
    return new Set(some.map(({ id }) => id.split(' ').at(-1)))
  }

  /** Only what did not fit is set aside for it: a failed call is no reason. */
  private checkAside(): void {
    for (const { kind, id } of this.statements.aside.all()) {
      const invoice = this.model.invoices.get(String(id))
      const document = this.model.documents.get(Number(id))
      const hasReason =
        (kind !== 'invoice' || id === '' || invoice?.states.some(({ fits }) => !fits)) &&
        (kind !== 'document' || document?.states.some(({ fits }) => !fits)) &&
        (kind !== 'field' || document?.states.some(({ hasOddField }) => hasOddField))
      if (!hasReason) throw new Violation(`the ${kind} ${id} is set aside, and always fitted`)
    }
  }

  /** Nothing is shown that was over before the moment that the store claims to follow its sources until. */
  private checkFreshness(): void {
    const claimed = this.statements.freshness.get()?.synced_at as number | null
    if (claimed === null) return
    const followed = (this.statements.streams.all() as unknown as StreamRow[]).filter(
      ({ name }) => name === 'stripe:events' || name.startsWith('ix:'),
    )
    const moments = followed.map(({ succeeded_at }) => this.time.trueTimeOf(succeeded_at ?? -1))
    if (moments.includes(null)) throw new Violation(`the store claims to be fresh, and a stream never ended`)
    const sinceMs = Math.min(...(moments as number[]))
    // A key that sees nothing shows an account in which nothing happens.
    if (sinceMs <= this.model.blindUntilMs) return
    const claimedMs = this.time.trueTimeOf(claimed)
    if (!this.isClockSet && (claimedMs === null || claimedMs > sinceMs))
      throw new Violation(`the store claims to be fresher than its streams`)
    const aside = this.readAside()
    for (const model of this.model.invoices.values()) this.checkFresh(model, sinceMs, aside)
    if (followed.length > 1)
      for (const model of this.model.documents.values()) this.checkFreshDocument(model, sinceMs, aside)
  }

  /** A round over documents that ended has read what was due in it, as it was when the round began or later. */
  private checkDocumentStreams(): void {
    const streams = this.statements.streams.all() as unknown as StreamRow[]
    const [openMs, recentMs] = ['ix:open', 'ix:recent'].map(stream => {
      const { succeeded_at = null } = streams.find(({ name }) => name === stream) ?? {}
      return succeeded_at === null ? null : this.time.trueTimeOf(succeeded_at)
    }) as [number | null, number | null]
    for (const { id, invoice, place } of this.rows.values()) {
      const attempted = this.model.invoices.get(id)?.states[place]?.claim.attempted_at ?? ''
      if (invoice.ix_sync_state === 'creating' && (openMs ?? 0) > Date.parse(attempted) + creatingTimeoutMs)
        throw new Violation(`${id} is creating since ${attempted}, and a round ended since then`)
    }
    const aside = this.readAside()
    for (const { id, states, deletedMs } of this.model.documents.values()) {
      if (deletedMs < Number.POSITIVE_INFINITY || aside.has(String(id))) continue
      const stored = this.documents.get(id)
      const isOpen = ({ status }: { status: string | null }) => status === 'draft' || status === 'final'
      const check = (
        stream: string,
        sinceMs: number | null,
        isDue: (since: readonly DocumentState[]) => boolean,
      ) => {
        const place = states.findLastIndex(({ fromMs }) => fromMs <= (sinceMs ?? 0))
        const since = states.slice(place)
        if (place === -1 || !since.every(({ fits }) => fits) || !isDue(since)) return
        if (stored === undefined || stored.place < place)
          throw new Violation(
            `document ${id} is stored as d${stored?.place}, and was d${place} when ${stream} began`,
          )
      }
      check('ix:open', openMs, since => since.every(isOpen) || (stored?.misses === 0 && isOpen(stored)))
      const firstDay = new Date((recentMs ?? 0) - recentDays * dayMs).toISOString().slice(0, 10)
      check('ix:recent', recentMs, ([first]) => (first?.date ?? '') >= firstDay)
    }
  }

  private checkFresh(model: ModelInvoice, sinceMs: number, aside: Set<string | undefined>): void {
    const { id, states, deletedMs, isLostInSilence, wasHidden } = model
    const row = this.rows.get(id)
    if (wasHidden && row === undefined) return
    // Changes without an event are found by the next list of everything.
    const place = states.findLastIndex(({ fromMs, isSilent }) => fromMs <= sinceMs && !isSilent)
    if (place === -1 || aside.has(id)) return
    if (deletedMs <= sinceMs) {
      if (row !== undefined && !isLostInSilence) throw new Violation(`${id} is shown, and was deleted before`)
      return
    }
    const isOurs = ({ fits, isOdd, customer_id }: InvoiceState) => fits && !isOdd && customer_id !== null
    const since = states.filter(({ untilMs }) => untilMs > sinceMs)
    if (row !== undefined) {
      if (row.place >= place) return
      // A draft that changed again is in no list of its customer's drafts: its own event brings the new name, too.
      const isRenamed = states.slice(row.place + 1, place + 1).every(state => state.isRenamed)
      if (isRenamed && (place < states.length - 1 || deletedMs < Number.POSITIVE_INFINITY)) return
      const { rev } = states[place] as InvoiceState
      throw new Violation(
        `${id} shows ${row.invoice.customer_name}, and was r${rev} before what the store claims`,
      )
    }
    // One that is seen deleted, or not to be ours, after that moment is not shown.
    if (deletedMs === Number.POSITIVE_INFINITY && since.every(isOurs))
      throw new Violation(`${id} is missing, and was there before what the store claims`)
    if (
      deletedMs === Number.POSITIVE_INFINITY &&
      states.slice(place).every(({ fits, isOdd }) => !fits || isOdd)
    )
      throw new Violation(`${id} is refused, and nothing shows it`)
  }

  private checkFreshDocument(model: ModelDocument, sinceMs: number, aside: Set<string | undefined>): void {
    const { id, states, deletedMs } = model
    const stored = this.documents.get(id)
    const place = states.findLastIndex(({ fromMs }) => fromMs <= sinceMs)
    if (place === -1 || deletedMs < Number.POSITIVE_INFINITY || aside.has(String(id))) return
    const since = states.filter(({ untilMs }) => untilMs > sinceMs)
    if (!since.every(({ fits }) => fits)) {
      if (since.every(({ fits }) => !fits))
        throw new Violation(`document ${id} does not fit, and nothing shows it`)
      return
    }
    if (stored === undefined)
      throw new Violation(`document ${id} is missing, and was there before what the store claims`)
    if (stored.place < place)
      throw new Violation(
        `document ${id} is stored as d${stored.place}, and was d${place} before what the store claims`,
      )
    const [{ reference = null, uid = null } = {}] = since
    const isSame = since.every(state => state.reference === reference && state.uid === uid)
    const named = isSame ? this.namedBy({ reference, uid }, null, this.rows) : []
    const row = named.length === 1 ? this.rows.get(named[0] ?? '') : undefined
    if (row !== undefined && row.invoice.ix_id === null)
      throw new Violation(
        `${row.id} shows no document, and ${id} refers to it since before what the store claims`,
      )
  }

  /** With the faults over, and time for each frequent stream: what may still change equals its source, also without an event. */
  checkUnsettled(): void {
    const aside = this.readAside()
    for (const { id, status, place } of this.rows.values()) {
      const { states, deletedMs } = this.model.invoices.get(id) as ModelInvoice
      if (status === 'paid' || status === 'void' || aside.has(id)) continue
      if (deletedMs < Number.POSITIVE_INFINITY || place < states.length - 1)
        throw new Violation(`${id} is still ${status}, and changed without an event`)
    }
  }

  /** With the faults over, and time for every stream: the store equals its sources. */
  checkConverged(hasDocuments: boolean): void {
    const [aside, held] = [this.readAside(false), this.readAside(true)]
    this.checkHeldBack()
    for (const model of this.model.invoices.values()) {
      const { id } = model
      const row = this.rows.get(id)
      const state = this.model.current(model)
      if (state === null) {
        if (row !== undefined && !held.has(id))
          throw new Violation(`in the end ${id} is shown, and is deleted`)
        continue
      }
      const isRefused = !state.fits || state.isOdd || (state.customer_id === null && row === undefined)
      if (isRefused !== aside.has(id))
        throw new Violation(
          `in the end ${id} is ${isRefused ? 'refused, and nothing shows it' : 'still set aside, and fits'}`,
        )
      if (isRefused) continue
      if (row === undefined) throw new Violation(`in the end ${id} is missing`)
      const link = hasDocuments && !held.has(id) ? this.trueLink(model, state) : fieldsOf(row.invoice)
      const expected = { ...row.invoice, ...toInvoice(model, state), ...link }
      const shown = { ...row.invoice, customer_id: state.customer_id === null ? '' : row.invoice.customer_id }
      if (serializeSummary(expected) !== serializeSummary(shown))
        throw new Violation(`in the end ${id} is ${row.summary}, not ${serializeSummary(expected)}`)
    }
    if (!hasDocuments) return
    for (const [id, model] of this.model.documents) {
      const state = this.model.currentDocument(model)
      if (aside.has(String(id)) !== (state?.hasOddField ?? false))
        throw new Violation(
          `in the end document ${id} is ${aside.has(String(id)) ? 'still set aside, and fits' : 'stored without a field, and nothing shows it'}`,
        )
      const stored = this.documents.get(id)
      if (state !== null && stored?.place !== model.states.length - 1)
        throw new Violation(`in the end document ${id} is stored as d${stored?.place}`)
    }
  }

  /** A loss is held back no longer than it is one. */
  private checkHeldBack(): void {
    for (const { system, kind, id } of this.statements.aside.all()) {
      if (system !== 'deletion_guard') continue
      const invoiceId = String(id).split(' ').at(-1) ?? ''
      const row = this.rows.get(invoiceId)
      const isLost =
        kind === 'deletion'
          ? (this.model.invoices.get(invoiceId)?.deletedMs ?? 0) < Number.POSITIVE_INFINITY
          : (this.documents.get(row?.invoice.ix_id ?? -1)?.misses ?? 0) >= missesToBelieve ||
            // Its client may have another tax ID by now.
            this.model.isTaxIdCorrected
      if (row === undefined || !isLost)
        throw new Violation(`in the end the ${kind} of ${id} is still held back`)
    }
  }

  /** By the words of the convention, one after the other; written without a look at the code that does the same. */
  private trueLink(model: ModelInvoice, state: InvoiceState): LinkFields {
    const { claim } = state
    const there = [...this.model.documents.values()].flatMap(document => {
      const current = this.model.currentDocument(document)
      return current === null ? [] : [{ document, current }]
    })
    const claimed = there.find(({ document }) => document.id === claim.ix_id)
    const isOwn = claimed !== undefined && this.ownerOf(claimed.document, claimed.current) === model.id
    const referring = there.filter(({ document, current }) => {
      const taxId = this.clientTaxIdOf(document)
      return this.namedBy(current, taxId, this.rows).join() === model.id
    })
    const inForce = referring.find(({ current }) => current.status !== 'canceled')
    const found = (isOwn ? claimed : undefined) ?? inForce ?? referring[0]
    if (found !== undefined) {
      const { status, date } = found.current
      const ix_created_at = claim.created_at ?? `${date}T00:00:00.000Z`
      return { ix_sync_state: 'synced' as const, ix_id: found.document.id, ix_status: status, ix_created_at }
    }
    return {
      ix_sync_state: this.stateWithout(claim),
      ix_id: null,
      ix_status: null,
      ix_created_at: null,
    }
  }

  private stateWithout({ state, attempted_at, ix_id }: Claim): SyncState {
    if (state === 'ignored' || state === 'failed') return state
    if (state === 'creating')
      return this.time.nowMs - Date.parse(attempted_at ?? '') > creatingTimeoutMs ? 'failed' : 'creating'
    // A recorded document is another's, or is not there.
    return ix_id === null ? 'not_synced' : 'failed'
  }

  private clientTaxIdOf({ id, clientId }: ModelDocument): string | null {
    return asIssued(this.documents.get(id)?.client_tax_id ?? null, this.model.taxIdOf(clientId))
  }

  private ownerOf(document: ModelDocument, current: DocumentState): string | null {
    const { id } = document
    const clientTaxId = this.clientTaxIdOf(document)
    const named = this.namedBy(current, clientTaxId, this.rows)
    if (named.length === 1) return named[0] ?? null
    const claimants = this.storedRows().filter(({ id: invoiceId }) => {
      const model = this.model.invoices.get(invoiceId) as ModelInvoice
      const state = model.states[this.rows.get(invoiceId)?.place ?? -1]
      if (state?.claim.ix_id !== id) return false
      if (named.length > 1) return named.includes(invoiceId)
      return state.tax_id === null || clientTaxId === null || state.tax_id === clientTaxId
    })
    const [first] = claimants.toSorted((a, b) => a.issued_at - b.issued_at || (a.id < b.id ? -1 : 1))
    return first?.id ?? null
  }

  /** An event that was acknowledged is stored, or what is wrong with the invoice is shown. */
  checkAcknowledged(invoiceId: string, rev: number): void {
    const model = this.model.invoices.get(invoiceId) as ModelInvoice
    const stored = this.statements.summary.get(invoiceId)?.summary as string | undefined
    const shown = stored === undefined ? -1 : revOf((JSON.parse(stored) as Invoice).customer_name)
    const isAside = (this.statements.aside.all() as { id: string }[]).some(({ id }) => id.endsWith(invoiceId))
    if (isAside || model.wasHidden || model.deletedMs < Number.POSITIVE_INFINITY) return
    // The event of a state without changes of its own, such as a creation, names an earlier one.
    const first = model.states.find(state => state.rev >= rev) ?? (model.states[0] as InvoiceState)
    if (shown < first.rev) throw new Violation(`${invoiceId} is stored as r${shown}, not r${first.rev}`)
  }

  /** Whether no event tells of a change of the invoice, or lists did not show it for a while. */
  hasChangedInSilence(id: string): boolean {
    const { states, isLostInSilence, wasHidden } = this.model.invoices.get(id) as ModelInvoice
    return isLostInSilence || wasHidden || states.some(({ isSilent }) => isSilent)
  }

  /** Number of records that are set aside, refused or held back. */
  countAside(): number {
    return this.statements.aside.all().length
  }
}
