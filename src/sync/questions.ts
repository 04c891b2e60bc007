/**
 * What the connector asks again and again: one entry a question, from which `rounds.ts` makes the schedule. CONTRIBUTING.md, "A recurring
 * question", tells all that a new one needs. `fatura sync --once` does not use this table: its steps stand in their order in
 * `sync-invoices.ts`, and those for documents in `src/cli/start/start-sync.ts`.
 */
import { billingStreams, documentStreams } from '../sources/stream-names.ts'
import type { Swept } from './documents/document-round.ts'
import type { DocumentSync } from './documents/documents.ts'
import type { Applied } from './invoices/apply-answers.ts'
import type { Connector } from './invoices/connector.ts'
import { everyMs } from './schedule.ts'

/** How long a round waits for the lists of whole customers, which go on without it. */
export const customerPatienceMs = 2_000

/**
 * What the interval counts from. `start`: the question is due at each start of the process, and then at its interval, also after a
 * failure. A question about what is set aside has no stream.
 *
 * `end` and `beginning`: the end or the beginning of the stream's last success, which a restart does not forget. A question that was cut
 * off left a cursor, and goes on at once. One that fails is asked again after 5 s, and then after twice as long each time, up to a minute.
 */
type Counted =
  | { from: 'start'; stream: string | null }
  | {
      from: 'end' | 'beginning'
      stream: string
      /** Whether it waits until the whole account was listed. */
      needsAccount?: true
    }

export type Question = Counted & {
  /** Its name in the log. */
  step: string
  everyMs: number
  /** Questions of one lane take turns, and the first of the table goes first; lanes go on side by side. */
  lane: string
  /** Resolves with what it changed; null when there is nothing to tell. At which pace it asks is the business of what it calls. */
  ask(isFirst: boolean): Promise<Applied | Swept | null>
}

export function invoiceQuestions(connector: Connector): Question[] {
  const streams = billingStreams(connector.source)
  return [
    {
      step: 'backfill',
      stream: streams.backfill,
      everyMs: everyMs.backfill,
      from: 'start',
      lane: 'account',
      ask: async () => ((await connector.isListed()) ? null : connector.backfill()),
    },
    {
      step: 'rereadUnsettled',
      stream: streams.unsettled,
      everyMs: everyMs.unsettled,
      from: 'start',
      lane: 'account',
      // Invoices listed since the start are not fetched again at once; but what a round that failed has read may have changed since.
      ask: isFirst => connector.rereadUnsettled(isFirst ? connector.startedAt : undefined),
    },
    {
      step: 'catchUp',
      stream: streams.events,
      everyMs: everyMs.events,
      from: 'start',
      lane: 'events',
      ask: () => connector.catchUp(customerPatienceMs),
    },
    {
      step: 'relist',
      stream: streams.relist,
      everyMs: relistEveryOf(connector),
      from: 'end',
      lane: 'relist',
      needsAccount: true,
      ask: () => connector.relist(false),
    },
    {
      step: 'retrySetAside',
      stream: null,
      everyMs: everyMs.aside,
      from: 'start',
      lane: 'set aside',
      ask: () => connector.retrySetAside('due'),
    },
  ]
}

export function documentQuestions(documents: DocumentSync): Question[] {
  const streams = documentStreams(documents.source)
  return [
    {
      step: 'sweepRecent',
      stream: streams.recent,
      everyMs: everyMs.recent,
      from: 'start',
      lane: 'frequent',
      ask: () => documents.sweepRecent(),
    },
    {
      step: 'refreshOpen',
      stream: streams.open,
      everyMs: everyMs.open,
      from: 'start',
      lane: 'frequent',
      ask: () => documents.refreshOpen(),
    },
    {
      step: 'sweepMonth',
      stream: streams.all,
      everyMs: everyMs.all,
      from: 'beginning',
      lane: 'all',
      // The oldest invoice bounds the sweep: all of them must be stored.
      needsAccount: true,
      ask: () => documents.sweepMonth(),
    },
  ]
}

export function relistEveryOf({ source }: Pick<Connector, 'source'>): number {
  return source.relistEveryMs ?? everyMs.relist
}
