/** Asks the platform and commits its answers. A stamp is taken before each question and after its answer. */
import type { Logger } from 'pino'
import { applyOutcomes, invoicesApplied } from '../../sources/calls/telemetry.ts'
import type { AnswerPage, InvoiceAnswer } from '../../sources/source.ts'
import { waitingKind } from '../../store/connector-store.ts'
import type { NextStamp } from '../../store/stamps.ts'
import { StoreUnavailable, type WriteStore, type WriteTransaction } from '../../store/store.ts'
import type { Linking } from '../link-invoices.ts'
import { type AskedRecord, invoiceKinds, noId, saveSetAside, type Wanted } from '../set-aside.ts'
import { type Applied, addApplied, applyAnswers, nothingApplied } from './apply-answers.ts'
import type { Corrections } from './corrections.ts'
import type { StampedAnswer } from './decide.ts'
import type { Cause } from './outcomes.ts'

interface Stamps {
  askedAt: number
  answeredAt: number
}

type Answered = Stamps & Pick<AnswerPage, 'answers'> & Partial<Pick<AnswerPage, 'unfit' | 'nameless'>>

/** `recheck`: the question looks for changes that no event announced. A difference counts as a missed event. */
export type Recheck = 'recheck' | null

/** The reason of a question: an event, a recheck, or neither. */
export type Why = Cause | Recheck

export interface CommitOptions extends Linking {
  /** The system under which set-aside records are stored. */
  system: string
  store: WriteStore
  log: Logger
  corrections: Corrections
  nextStamp: NextStamp
}

/** The counts of a commit. `overlaps` holds the ids of invoices that must be fetched again. */
export interface Committed {
  applied: Applied
  overlaps: readonly string[]
}

type Alongside = (tx: WriteTransaction) => Promise<void>

export type Commits = ReturnType<typeof createCommits>

export function createCommits(options: CommitOptions) {
  const { store, log, nextStamp } = options

  async function commit(pages: readonly Answered[], why: Why, alongside?: Alongside): Promise<Committed> {
    const committed = await commitWhole(options, pages, why, alongside).catch(async error => {
      if (!(error instanceof StoreUnavailable)) throw error
      const groups = await store.groupByNode(customersOf(pages))
      if (groups === null) throw error
      return commitByNode(options, pages, why, groups, alongside)
    })
    report(log, pages, committed.applied)
    return committed
  }

  return {
    commit,
    async ask<T>(question: () => Promise<T>): Promise<T & Stamps> {
      const askedAt = nextStamp()
      const answer = await question()
      return { ...answer, askedAt, answeredAt: nextStamp() }
    },
  }
}

/**
 * Commits answers in one transaction. `alongside` writes the cursor in
 * the same transaction, because a cursor must not run ahead of its rows.
 */
function commitWhole(
  options: CommitOptions,
  pages: readonly Answered[],
  why: Why,
  alongside?: Alongside,
): Promise<Committed> {
  return options.store.transaction(async tx => {
    let committed = nothingCommitted
    for (const some of withoutRepeats(pages))
      committed = addCommitted(committed, await applyPages(tx, options, some, why, false))
    await alongside?.(tx)
    return committed
  })
}

/**
 * Commits the customers of each database node separately, while a node
 * is out of reach. All invoices are fetched again when the node is back.
 */
async function commitByNode(
  options: CommitOptions,
  pages: readonly Answered[],
  why: Why,
  groups: readonly (readonly string[])[],
  alongside?: Alongside,
): Promise<Committed> {
  const { store, log } = options
  let committed = nothingCommitted
  let rest = pages
  for (const customers of groups) {
    const isTheirs = ({ customer_id, found }: InvoiceAnswer) =>
      found !== null && customer_id !== null && customers.includes(customer_id)
    try {
      const some = await store.transaction(tx =>
        applyPages(tx, options, keepAnswers(pages, isTheirs), why, true),
      )
      committed = addCommitted(committed, some)
      rest = keepAnswers(rest, answer => !isTheirs(answer))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }
  await store.transaction(async tx => {
    await saveUnfit(tx, options, pages)
    for (const { askedAt, answers } of rest)
      await replaceAll(tx, options, new Map(answers.map(({ id }) => [id, { askedAt, wanted: waiting }])))
    await alongside?.(tx)
  })
  const waits = pages.reduce((sum, { answers }) => sum + answers.length, 0)
  log.warn(
    { invoices: waits },
    'part of the database is out of reach, so these invoices are fetched again later',
  )
  return committed
}

/** Applies pages that have no invoice in common. `isPartial`: a node is out of reach, so every answer is set aside as waiting. */
async function applyPages(
  tx: WriteTransaction,
  options: CommitOptions,
  pages: readonly Answered[],
  why: Why,
  isPartial: boolean,
): Promise<Committed> {
  const { rules, guard, corrections } = options
  const answers = pages.flatMap(({ answers, askedAt, answeredAt }) =>
    answers.map((answer): StampedAnswer => ({ ...answer, askedAt, answeredAt })),
  )
  const linking = { rules, guard, now: Date.now() }
  const cause = why === 'recheck' ? null : why
  const outcome = await applyAnswers(tx, answers, { ...linking, cause, isPartial })
  const { applied, overlaps, setAside, different } = outcome
  const askedAt = new Map(answers.map(answer => [answer.id, answer.askedAt]))
  const wanted = new Map(
    [...setAside].map(([id, wanted]) => {
      return [id, { askedAt: askedAt.get(id) ?? 0, wanted: isPartial ? waiting : wanted }]
    }),
  )
  const before = await replaceAll(tx, options, wanted)
  if (isPartial) return { applied, overlaps: [] }
  await saveUnfit(tx, options, pages)
  if (why === 'recheck') {
    // Two kinds of differences do not count as missed events. An invoice that was set aside had its event, but its answer failed the
    // checks. A deletion that an operator let through had been held back before.
    const unannounced = different.filter(key => !before.has(key.id) && !guard.isLetThrough('deletion', key))
    await corrections.record(tx, answers.length, unannounced)
  }
  const nameless = pages.reduce((sum, { nameless = 0 }) => sum + nameless, 0)
  if (nameless === 0) return { applied, overlaps }
  await replaceAll(tx, options, new Map([[noId, { askedAt: 0, wanted: withoutId }]]))
  return { applied: addApplied(applied, { ...nothingApplied, refused: { no_id: nameless } }), overlaps }
}

async function saveUnfit(
  tx: WriteTransaction,
  options: CommitOptions,
  pages: readonly Answered[],
): Promise<void> {
  for (const { askedAt, unfit = [] } of pages)
    await replaceAll(
      tx,
      options,
      new Map(unfit.map(({ id, reason }) => [id, { askedAt, wanted: { kind: 'invoice', reason } }])),
    )
}

function replaceAll(
  tx: WriteTransaction,
  { system }: CommitOptions,
  records: ReadonlyMap<string, AskedRecord>,
): Promise<Set<string>> {
  return saveSetAside(tx, system, invoiceKinds, records)
}

const nothingCommitted: Committed = { applied: nothingApplied, overlaps: [] }

function addCommitted(a: Committed, b: Committed): Committed {
  return { applied: addApplied(a.applied, b.applied), overlaps: [...a.overlaps, ...b.overlaps] }
}

const waiting: Wanted = { kind: waitingKind, reason: 'part of the database was out of reach' }
const withoutId: Wanted = { kind: 'refused', reason: 'no_id' }

function report(log: Logger, pages: readonly Answered[], applied: Applied): void {
  for (const { unfit = [] } of pages)
    for (const { id, reason } of unfit)
      log.warn({ invoice: id, reason }, 'an invoice could not be read and was set aside')
  for (const [reason, count] of Object.entries(applied.refused))
    log.debug({ reason, count }, 'invoices were refused')
  if (!invoicesApplied.hasSubscribers) return
  const { changed, deleted, overlapped } = applied
  const refused = Object.values(applied.refused).reduce((a, b) => a + b, 0)
  const counts = { changed, deleted, overlapped, refused }
  for (const outcome of applyOutcomes) invoicesApplied.publish({ outcome, count: counts[outcome] })
}

function customersOf(pages: readonly Answered[]): string[] {
  const customers = pages.flatMap(({ answers }) => answers.map(({ customer_id }) => customer_id))
  return [...new Set(customers)].filter(customer => customer !== null)
}

function keepAnswers(pages: readonly Answered[], isKept: (answer: InvoiceAnswer) => boolean): Answered[] {
  return pages.flatMap(({ askedAt, answeredAt, answers }) => {
    const kept = answers.filter(isKept)
    return kept.length === 0 ? [] : [{ askedAt, answeredAt, answers: kept }]
  })
}

/** Groups pages in their order, so that no group holds an invoice twice. A later answer must find the earlier answer stored. */
function withoutRepeats(pages: readonly Answered[]): Answered[][] {
  const together: Answered[][] = []
  const seen = new Set<string>()
  for (const page of pages) {
    const ids = [...page.answers, ...(page.unfit ?? [])].map(({ id }) => id)
    if (together.length === 0 || ids.some(id => seen.has(id))) {
      together.push([])
      seen.clear()
    }
    together.at(-1)?.push(page)
    for (const id of ids) seen.add(id)
  }
  return together
}
