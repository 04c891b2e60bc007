/** Calls to the platform, stamped before the request: of two answers, the store keeps the one that was requested later. */
import type { Logger } from 'pino'
import type { InvoiceKey } from '../invoice.ts'
import type { Observation, ObservationPage } from '../sources.ts'
import { type RefusedKind, type SetAsideKey, waitingKind } from '../store/connector-store.ts'
import { createStamps } from '../store/stamps.ts'
import { StoreUnavailable, type WriteStore, type WriteTransaction } from '../store/store.ts'
import { applyOutcomes, invoicesApplied } from '../telemetry.ts'
import { type Applied, addApplied, applyObservations, type Cause, noId, nothingApplied } from './apply.ts'
import type { Corrections } from './corrections.ts'
import type { LinkOptions } from './link-invoices.ts'

interface Answer
  extends Pick<ObservationPage, 'observations'>,
    Partial<Pick<ObservationPage, 'unfit' | 'nameless'>> {
  askedAt: number
}

export type StampedCalls = Awaited<ReturnType<typeof createStampedCalls>>

/** Further ones are read from the store when they are tried again. */
const asideAtStart = 10_000
/** Far more than arrive while a request is open. An answer that is forgotten too early costs at worst one more fetch. */
const rememberedAtMost = 100_000

interface Aside {
  /** `invoice` for one that does not fit, a refused kind, or `waiting`. */
  kind: string
  askedAt: number
}

interface Answered {
  at: number
  isGone: boolean
}

/** What a transaction remembered of its answers, and what was known before them: taken back when they are written again. */
type Remembered = { id: string; own: Answered; last: Answered }[]

/** Why answers were asked for: an event; a list that looks again for what no event announced; or neither. */
export type Why = Cause | 'recheck' | null

interface Writing {
  tx: WriteTransaction
  why: Why
  /** Of a list that looks again: how many invoices it looked at, and those that were not as they were stored. */
  checked: number
  corrected: InvoiceKey[]
  remembered: Remembered
  /** Changes to the set-aside records, remembered once this is committed; null for those that are cleared. */
  changes: Map<string, Aside | null>
}

/** `system` is the one that set-aside records are stored under. */
export async function createStampedCalls(
  options: LinkOptions & { system: string; store: WriteStore; log: Logger; corrections: Corrections },
) {
  const { system, store, rules, guard, log, corrections } = options
  const nextStamp = createStamps(await store.readLastObserved())
  /** The stamp at which the last answer about each invoice arrived, and whether there is none. A request made before may have seen more or less. */
  const answered = new Map<string, Answered>()
  const aside = new Map<string, Aside>()
  const released = new Set(guard.released('deletion').map(({ id }) => id))

  /** Remembers records as set aside, so that they are cleared once they fit. */
  function expect(records: readonly SetAsideKey[]): void {
    for (const { kind, id } of records) aside.set(id, { kind, askedAt: aside.get(id)?.askedAt ?? 0 })
  }
  expect(await store.listSetAside(asideAtStart, system))

  /** Called before the commit: another transaction, waiting for this one, may go on before this process hears of the commit. */
  function remember({ remembered }: Writing, { id, map }: Observation): void {
    const own = { at: nextStamp(), isGone: map === null }
    remembered.push({ id, own, last: answered.get(id) ?? { at: 0, isGone: false } })
    answered.delete(id)
    answered.set(id, own)
    if (answered.size > rememberedAtMost) answered.delete(answered.keys().next().value as string)
  }

  /** An invoice is set aside once, under the kind of the last answer; `record` is null when it fits. */
  async function replaceAside(
    { tx, changes }: Writing,
    id: string,
    askedAt: number,
    record: { kind: Aside['kind']; reason: string } | null,
  ): Promise<void> {
    const before = changes.has(id) ? changes.get(id) : aside.get(id)
    // An answer that was requested earlier than the one that was set aside does not clear it.
    if (record === null && askedAt < (before?.askedAt ?? 0)) return
    if (before && before.kind !== record?.kind) {
      await tx.clearSetAside([{ system, kind: before.kind, id }])
      changes.set(id, null)
    }
    if (record === null) return
    await tx.setAside({ system, id, ...record }, Date.now())
    changes.set(id, { kind: record.kind, askedAt: Math.max(askedAt, before?.askedAt ?? 0) })
  }

  /** The answers have no invoice in common. */
  async function apply(writing: Writing, answers: readonly Answer[], isPartial: boolean): Promise<Applied> {
    const { why } = writing
    const isRecheck = why === 'recheck' && !isPartial
    const observations = answers.flatMap(({ observations }) => observations)
    const stamps = answers.flatMap(({ askedAt, observations }) => observations.map(() => askedAt))
    const stampOfId = new Map(observations.map(({ id }, index) => [id, stamps[index] ?? 0]))
    const isOpen = (id: string) => (answered.get(id)?.at ?? 0) > (stampOfId.get(id) ?? 0)
    const isGone = (id: string) => isOpen(id) && answered.get(id)?.isGone === true
    const refused = new Map<string, { kind: RefusedKind; reason: string }>()
    const onRefused = (id: string, reason: string, isStored: boolean) =>
      refused.set(id, { kind: isStored ? 'outdated' : 'refused', reason })
    const onDifferent = (key: InvoiceKey) => {
      // One that is set aside was announced, and did not fit then; a deletion that is let through was held back.
      if (!aside.has(key.id) && !released.has(key.id)) writing.corrected.push(key)
    }
    const options = {
      ...{ isOpen, isGone, rules, guard, onRefused, isPartial },
      cause: why === 'recheck' ? null : why,
      ...(isRecheck && { onDifferent }),
    }
    const applied = await applyObservations(writing.tx, observations, stamps, options)
    if (isRecheck) writing.checked += observations.length
    for (const observation of observations) remember(writing, observation)
    const nameless = answers.reduce((sum, { nameless = 0 }) => sum + nameless, 0)
    if (nameless > 0) {
      applied.refused.no_id = nameless
      await replaceAside(writing, noId, 0, { kind: 'refused', reason: 'no_id' })
    }
    for (const { askedAt, unfit = [] } of answers)
      for (const { id, reason } of unfit)
        await replaceAside(writing, id, askedAt, { kind: 'invoice', reason })
    for (const { id } of observations)
      await replaceAside(writing, id, stampOfId.get(id) ?? 0, isPartial ? waiting : (refused.get(id) ?? null))
    return applied
  }

  function write(
    answers: readonly Answer[],
    remembered: Remembered,
    why: Why,
    isPartial: boolean,
    alongside: (writing: Writing) => Promise<void> | undefined = async () => {},
  ): Promise<Applied> {
    return store.transaction(async tx => {
      for (const { id, own, last } of remembered.splice(0).reverse())
        if (answered.get(id) === own) answered.set(id, last)
      const writing: Writing = { tx, why, checked: 0, corrected: [], remembered, changes: new Map() }
      let applied = nothingApplied
      for (const some of withoutRepeats(answers))
        applied = addApplied(applied, await apply(writing, some, isPartial))
      await corrections.note(tx, writing.checked, writing.corrected)
      await alongside(writing)
      for (const [id, change] of writing.changes)
        tx.afterCommit(() => (change === null ? aside.delete(id) : aside.set(id, change)))
      tx.afterCommit(() => remembered.splice(0))
      return applied
    })
  }

  /** While a node is out of reach: commits the customers of each node alone, where possible. All are fetched again once it is back. */
  async function writeByNode(
    answers: readonly Answer[],
    remembered: Remembered,
    why: Why,
    groups: readonly (readonly string[])[],
    alongside: ((tx: WriteTransaction) => Promise<void>) | undefined,
  ): Promise<Applied> {
    let total = nothingApplied
    let left = answers
    for (const customers of groups) {
      const isTheirs = ({ customer_id, map }: Observation) =>
        map !== null && customer_id !== null && customers.includes(customer_id)
      try {
        total = addApplied(total, await write(keepObservations(answers, isTheirs), remembered, why, true))
        left = keepObservations(left, observation => !isTheirs(observation))
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
      }
    }
    const misfits = answers.map(answer => ({ ...answer, observations: [] }))
    const rest = await write(misfits, remembered, null, true, async writing => {
      for (const { askedAt, observations } of left)
        for (const { id } of observations) await replaceAside(writing, id, askedAt, waiting)
      await alongside?.(writing.tx)
    })
    const waits = answers.reduce((sum, { observations }) => sum + observations.length, 0)
    log.warn({ invoices: waits }, 'part of the database is out of reach; these are fetched again later')
    return addApplied(total, rest)
  }

  return {
    startedAt: nextStamp(),
    nextStamp,
    async ask<T>(request: () => Promise<T>): Promise<T & { askedAt: number }> {
      const askedAt = nextStamp()
      return { ...(await request()), askedAt }
    },
    /** Commits answers; `alongside` writes, in the same transaction, what must not run ahead of them. */
    async commit(
      answers: readonly Answer[],
      why: Why = null,
      alongside?: (tx: WriteTransaction) => Promise<void>,
    ): Promise<Applied> {
      const remembered: Remembered = []
      const written = write(answers, remembered, why, false, ({ tx }) => alongside?.(tx))
      const total = await written.catch(async error => {
        if (!(error instanceof StoreUnavailable)) throw error
        const customers = answers.flatMap(({ observations }) => observations.map(each => each.customer_id))
        const groups = await store.groupByNode([...new Set(customers)].filter(each => each !== null))
        if (groups === null) throw error
        return writeByNode(answers, remembered, why, groups, alongside)
      })
      for (const { unfit = [] } of answers)
        for (const { id, reason } of unfit)
          log.warn({ invoice: id, reason }, 'an invoice does not fit and is set aside')
      tellApplied(total)
      for (const [reason, count] of Object.entries(total.refused))
        log.debug({ reason, count }, 'invoices refused')
      return total
    },
    expect,
  }
}

function tellApplied({ changed, deleted, superseded, refused }: Applied): void {
  if (!invoicesApplied.hasSubscribers) return
  const counts = { changed, deleted, superseded, refused: Object.values(refused).reduce((a, b) => a + b, 0) }
  for (const outcome of applyOutcomes) invoicesApplied.publish({ outcome, count: counts[outcome] })
}

const waiting = { kind: waitingKind, reason: 'part of the database was out of reach' }

function keepObservations(answers: readonly Answer[], isKept: (observation: Observation) => boolean) {
  return answers.flatMap(({ askedAt, observations }) => {
    const kept = observations.filter(isKept)
    return kept.length === 0 ? [] : [{ askedAt, observations: kept }]
  })
}

/** Groups answers, in their order, so that no group holds an invoice twice: a later answer must find the earlier one stored. */
function withoutRepeats(answers: readonly Answer[]): Answer[][] {
  const together: Answer[][] = []
  const seen = new Set<string>()
  for (const answer of answers) {
    const ids = [...answer.observations, ...(answer.unfit ?? [])].map(({ id }) => id)
    if (together.length === 0 || ids.some(id => seen.has(id))) {
      together.push([])
      seen.clear()
    }
    together.at(-1)?.push(answer)
    for (const id of ids) seen.add(id)
  }
  return together
}
