/** What is said of refused invoices: how many, why, and which, for example. */
import { invoiceStatuses } from '../invoice.ts'
import { type RefusedKind, refusedKinds, type SetAsideCount } from '../store/connector-store.ts'
import type { OperatorStore } from '../store/store.ts'
import type { RefusalReason } from './apply.ts'

/** Records without an id stand under this one, all of them as one. */
export const noId = ''

/** As many as one looks at. */
const examplesShown = 3

export interface Refused {
  /** Not stored at all, or stored as it was before. */
  kind: RefusedKind
  reason: string
  count: number
  /** The ids of those that were seen last. */
  examples: readonly string[]
}

export async function readRefused(
  store: Pick<OperatorStore, 'listSetAside'>,
  counts: readonly SetAsideCount[],
): Promise<Refused[]> {
  const refused: Refused[] = []
  for (const { system, kind, reason, count } of counts) {
    if (!isRefusedKind(kind) || reason === null) continue
    const newest = await store.listSetAside(examplesShown, system, { kind, reason, newestFirst: true })
    const examples = newest.map(({ id }) => id).filter(id => id !== noId)
    refused.push({ kind, reason, count, examples })
  }
  return refused
}

export function isRefusedKind(kind: string): kind is RefusedKind {
  return (refusedKinds as readonly string[]).includes(kind)
}

const words: Record<RefusalReason, string> = {
  no_customer: 'no customer',
  invalid_customer: 'the customer ID is not cus_ and letters and digits',
  unknown_status: `the status is not ${invoiceStatuses.slice(0, -1).join(', ')} or ${invoiceStatuses.at(-1)}`,
  preview: 'the ID is not in_ and letters and digits',
  missing: 'not found any more, though only a draft can be deleted',
  no_id: 'no ID',
}

/** In words, unless a newer version found a reason that this one does not know. */
export function tellReason(reason: string): string {
  return words[reason as RefusalReason] ?? reason
}

/** As in "7: no customer (in_1, in_2, in_3 and others)". */
export function tellRefused({ reason, count, examples }: Refused): string {
  const others = count > examples.length ? ' and others' : ''
  const named = examples.length === 0 ? '' : ` (${examples.join(', ')}${others})`
  return `${count}: ${tellReason(reason)}${named}`
}
