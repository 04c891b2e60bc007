/** What the platform answered, on its way into the store: stamped before it was asked, committed with what must not run ahead of it. */
import type { Logger } from 'pino'
import type { LinkRules } from '../linking/link.ts'
import type { Observation, Unfit } from '../sources.ts'
import type { RefusedKind, SetAsideKey } from '../store/connector-store.ts'
import { createStamps } from '../store/stamps.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'
import {
  type Applied,
  addApplied,
  applyObservations,
  type Cause,
  nothingApplied,
  type RefusedInvoice,
} from './apply.ts'
import type { Brake } from './brake.ts'
import { noId } from './refusals.ts'

export interface Answer {
  /** The stamp before the question. */
  askedAt: number
  observations: readonly Observation[]
  unfit?: readonly Unfit[]
  /** How many records have no id to keep them by. */
  nameless?: number
}

export interface Answers {
  /** The stamp before the first question of this process. */
  startedAt: number
  nextStamp(): number
  /** Asks, with a stamp of its own. */
  ask<T>(question: () => Promise<T>): Promise<T & { askedAt: number }>
  /** Commits answers, and with them whatever else must not run ahead of them. */
  commit(
    answers: readonly Answer[],
    cause?: Cause | null,
    alongside?: (tx: WriteTransaction) => Promise<void>,
  ): Promise<Applied>
  /** Remembers that these are set aside, so that they are cleared once they fit. */
  expect(records: readonly SetAsideKey[]): void
}

/** More are told apart by reading them from the store when they are tried again. */
const asideAtStart = 10_000
/** A question that is open for longer, in microseconds, was left behind: no call takes that long. */
const longestOpen = 30 * 60 * 1_000_000
/** However many are open: an answer that is forgotten too early is at worst followed by a later look. */
const rememberedAtMost = 200_000

interface Aside {
  /** `invoice` for one that does not fit, or a refused kind. */
  kind: string
  /** The stamp of the question that was answered so. */
  askedAt: number
}

interface Writing {
  tx: WriteTransaction
  /** What is set aside otherwise once this is committed; null for what no longer is. */
  changes: Map<string, Aside | null>
}

export interface AnswersOptions {
  /** What records that do not fit are set aside under. */
  system: string
  store: WriteStore
  rules: LinkRules
  brake: Brake
  log: Logger
}

export async function createAnswers({ system, store, rules, brake, log }: AnswersOptions): Promise<Answers> {
  const nextStamp = createStamps(await store.readLastObserved())
  /** When the last answer about an invoice was there. Of questions asked before, it is open which saw more. */
  const answered = new Map<string, number>()
  /** The stamps of questions that are not answered yet, the oldest first. */
  const open = new Set<number>()
  const aside = new Map<string, Aside>()

  function expect(records: readonly SetAsideKey[]): void {
    for (const { kind, id } of records) aside.set(id, { kind, askedAt: aside.get(id)?.askedAt ?? 0 })
  }
  expect(await store.listSetAside(asideAtStart, system))

  function remember(id: string): void {
    answered.delete(id)
    answered.set(id, nextStamp())
  }

  /** What was answered before every open question was asked has nothing left to say. */
  function forget(): void {
    const now = nextStamp()
    for (const stamp of open) {
      if (now - stamp < longestOpen) break
      open.delete(stamp)
    }
    const oldest = open.values().next().value ?? now
    for (const [id, at] of answered) {
      if (at >= oldest && answered.size <= rememberedAtMost) break
      answered.delete(id)
    }
  }

  /** An invoice is set aside once, as the last answer has it; `record` is null when it no longer is. */
  async function replaceAside(
    { tx, changes }: Writing,
    id: string,
    askedAt: number,
    record: { kind: Aside['kind']; reason: string } | null,
  ): Promise<void> {
    const before = changes.has(id) ? changes.get(id) : aside.get(id)
    // An answer that was asked for earlier than the one that was set aside says nothing of it.
    if (record === null && askedAt < (before?.askedAt ?? 0)) return
    if (before && before.kind !== record?.kind) {
      await tx.clearSetAside([{ system, kind: before.kind, id }])
      changes.set(id, null)
    }
    if (record === null) return
    await tx.setAside({ system, id, ...record }, Date.now())
    changes.set(id, { kind: record.kind, askedAt: Math.max(askedAt, before?.askedAt ?? 0) })
  }

  /** Of answers that have no invoice in common. */
  async function apply(writing: Writing, answers: readonly Answer[], cause: Cause | null): Promise<Applied> {
    const observations = answers.flatMap(({ observations }) => observations)
    const stamps = answers.flatMap(({ askedAt, observations }) => observations.map(() => askedAt))
    const stampOfId = new Map(observations.map(({ id }, index) => [id, stamps[index] ?? 0]))
    const isOpen = (id: string) => (answered.get(id) ?? 0) > (stampOfId.get(id) ?? 0)
    const refused = new Map<string, { kind: RefusedKind; reason: string }>()
    const onRefused = ({ id, reason, isStored }: RefusedInvoice) =>
      refused.set(id, { kind: isStored ? 'outdated' : 'refused', reason })
    const options = { isOpen, rules, cause, brake, onRefused }
    const applied = await applyObservations(writing.tx, observations, stamps, options)
    for (const { id } of observations) remember(id)
    const nameless = answers.reduce((sum, { nameless = 0 }) => sum + nameless, 0)
    if (nameless > 0) {
      applied.refused.no_id = nameless
      await replaceAside(writing, noId, 0, { kind: 'refused', reason: 'no_id' })
    }
    for (const { askedAt, unfit = [] } of answers)
      for (const { id, reason } of unfit)
        await replaceAside(writing, id, askedAt, { kind: 'invoice', reason })
    for (const { id } of observations)
      await replaceAside(writing, id, stampOfId.get(id) ?? 0, refused.get(id) ?? null)
    return applied
  }

  return {
    startedAt: nextStamp(),
    nextStamp,
    async ask(question) {
      const askedAt = nextStamp()
      open.add(askedAt)
      try {
        return { ...(await question()), askedAt }
      } catch (error) {
        open.delete(askedAt)
        throw error
      }
    },
    async commit(answers, cause = null, alongside) {
      let changes: Writing['changes'] = new Map()
      const total = await store.transaction(async tx => {
        changes = new Map()
        let applied = nothingApplied
        for (const some of withoutRepeats(answers))
          applied = addApplied(applied, await apply({ tx, changes }, some, cause))
        await alongside?.(tx)
        return applied
      })
      for (const [id, change] of changes)
        if (change === null) aside.delete(id)
        else aside.set(id, change)
      for (const { askedAt, unfit = [] } of answers) {
        open.delete(askedAt)
        for (const { id, reason } of unfit)
          log.warn({ invoice: id, reason }, 'an invoice does not fit and is set aside')
      }
      forget()
      for (const [reason, count] of Object.entries(total.refused))
        log.debug({ reason, count }, 'invoices refused')
      return total
    },
    expect,
  }
}

/** Answers in their order, together as far as no invoice comes twice: what was asked later is to find what was asked before. */
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
