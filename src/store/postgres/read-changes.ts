import type { BatchedRow, BatchRow, CustomerRow, FeedStatements } from '../shared/changes.ts'

export const feedCalls = {
  customerChanges: 'SELECT * FROM fatura.customer_changes($1, $2, $3)',
  batches: 'SELECT * FROM fatura.read_batches($1, $2)',
  batchChanges: 'SELECT * FROM fatura.batch_changes($1, $2, $3)',
} as const

/** Citus recovers a commit that a node did not hear of within this time. */
const citusSettleMs = 120_000

type Call = <Row extends object>(name: keyof typeof feedCalls, ...values: unknown[]) => Promise<Row[]>

export function feedStatements(call: Call, isCitus: boolean): FeedStatements {
  return {
    customer: (customerId, after, limit) => call<CustomerRow>('customerChanges', customerId, after, limit),
    batches: (after, limit) => call<BatchRow>('batches', after, limit),
    changes: spans =>
      call<BatchedRow>(
        'batchChanges',
        spans.map(({ batch }) => batch),
        spans.map(({ start }) => start),
        spans.map(({ end }) => end),
      ),
    settleMs: isCitus ? citusSettleMs : 0,
  }
}
