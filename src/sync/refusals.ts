/** Refused invoices: number, reason and examples. */
import { invoiceStatuses } from '../invoice.ts'
import { type RefusedKind, refusedKinds, type SetAsideCount } from '../store/connector-store.ts'
import type { OperatorStore } from '../store/store.ts'
import type { RefusalReason } from './apply.ts'

/** All records without an id are set aside as one, under this id. */
export const noId = ''

const examplesShown = 3

export interface Refused {
  /** Not stored at all, or stored as it was before. */
  kind: RefusedKind
  reason: string
  count: number
  /** The ids seen last. */
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

/** In words; a reason written by a newer version is returned as it is. */
export function formatReason(reason: string): string {
  return words[reason as RefusalReason] ?? reason
}

/** As in "7: no customer (in_1, in_2, in_3 and others)". */
export function formatRefused({ reason, count, examples }: Refused): string {
  const others = count > examples.length ? ' and others' : ''
  const named = examples.length === 0 ? '' : ` (${examples.join(', ')}${others})`
  return `${count}: ${formatReason(reason)}${named}`
}
