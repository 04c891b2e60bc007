/**
 * The recurring questions of the connector, one entry for each. `rounds.ts` makes the schedule from this table.
 * CONTRIBUTING.md, "A recurring question", tells how to add a question. `fatura sync --once` does not use this table.
 * Its steps for invoices are in `sync-invoices.ts`, and its steps for documents are in `src/cli/start/start-sync.ts`.
 */
import { billingStreams, documentStreams } from '../sources/stream-names.ts'
import type { Swept } from './documents/document-round.ts'
import type { DocumentSync } from './documents/documents.ts'
import type { Applied } from './invoices/apply-answers.ts'
import type { Connector } from './invoices/connector.ts'
import { everyMs } from './schedule.ts'

/** Milliseconds for which a round waits for lists of all invoices of a customer. Longer lists continue after the round. */
export const customerPatienceMs = 2_000

/**
 * The moment from which an interval counts. `start`: the question is due at each start of the process, and then after each
 * interval, even after a failure. A question about set-aside records has no stream. `end` and `beginning`: the interval counts from
 * the end or the beginning of the stream's last success, which is stored and survives a restart. A question that was cut off left a
 * cursor and continues at once. A failed question is repeated after 5 s, then after twice as long each time, up to a minute.
 */
type Counted =
  | { from: 'start'; stream: string | null }
  | {
      from: 'end' | 'beginning'
      stream: string
      /** True: the question waits until all invoices of the account were listed. */
      needsAccount?: true
    }

export type Question = Counted & {
  /** Name of the question in the log. */
  step: string
  everyMs: number
  /** Questions of one lane run one at a time, and the first due question of the table goes first. Lanes run at the same time. */
  lane: string
  /** Asks the question. Resolves with the counts of changes, or with null when there is nothing to report. */
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
      // The first run does not fetch invoices that were listed since the start.
      // Later runs fetch them, because they may have changed since a failed run.
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
      // The oldest invoice limits the sweep, so all invoices must be stored first.
      needsAccount: true,
      ask: () => documents.sweepMonth(),
    },
  ]
}

export function relistEveryOf({ source }: Pick<Connector, 'source'>): number {
  return source.relistEveryMs ?? everyMs.relist
}
