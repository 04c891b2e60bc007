/** Links an invoice to its certified document and derives `ix_sync_state`. Pure functions. */
import { copyStatus, type Document, originalStatusOf } from '../document.ts'
import { type Invoice, keyOf, type SyncState } from '../invoice.ts'
import type { Claimed, KnownDocument } from './known.ts'
import {
  fieldsOf,
  findClaimRefusal,
  findObstacle,
  ignoredBecause,
  isGone,
  isOverdue,
  type LinkFields,
  type LinkRefusal,
  type LinkRules,
  namesOnly,
  resolveNames,
} from './link.ts'
import type { Naming } from './reference.ts'

export interface Link {
  fields: LinkFields
  /** The rule that decided, as a text for people. */
  why: string
  /** IDs of all documents that fit, when more than one fits. */
  candidates: readonly number[]
  /** Reason why the recorded document belongs to another invoice. Null when it may belong to this invoice. */
  refusal: LinkRefusal | null
}

/**
 * Derives the link of one invoice. The first rule that fits decides. `own` is the invoice with its last link. `known` are the documents
 * that the invoice claims, is linked to, or is named by. `claimants` are all invoices that claim one of these documents, or have a payment
 * or number that one of them names. A linked document is given up only after the invoicing system answered twice that it is gone.
 */
export function deriveLink(
  own: Claimed,
  known: readonly KnownDocument[],
  rules: LinkRules,
  now: number,
  claimants: readonly Claimed[] = [],
): Link {
  const { invoice, claim } = own
  const all = [own, ...claimants.filter(other => keyOf(other.invoice) !== keyOf(invoice))]
  const refusal = findClaimRefusal(invoice, claim, known, all, rules)
  const candidates = findCandidates(invoice, refusal === null ? claim.ix_id : null, known, all, rules)
  const [best] = candidates
  if (best !== undefined) {
    const { id, status, date } = best.document
    return {
      fields: {
        ix_sync_state: 'synced',
        ix_id: id,
        ix_status: status,
        ix_created_at: claim.created_at ?? (date === null ? null : `${date}T00:00:00.000Z`),
      },
      why: `there is a document ${id === claim.ix_id ? `claimed as ${id}` : describeTie(best)}, and it is ${status}`,
      candidates: candidates.length > 1 ? candidates.map(({ document }) => document.id) : [],
      refusal,
    }
  }
  const { state, why } = deriveWithout(own, known, refusal, all, rules, now)
  const fields =
    state === null
      ? fieldsOf(invoice)
      : { ix_sync_state: state, ix_id: null, ix_status: null, ix_created_at: null }
  return { fields, why, candidates: [], refusal }
}

interface Candidate {
  document: Document
  /** Names that tie the document to the invoice. Empty when the document is only recorded with the invoice. */
  names: readonly Naming[]
}

/**
 * Returns the documents that certify the invoice, the best first. A second print is left out when its original is in the list, unless the
 * payment platform's record of the invoice names the second print.
 */
function findCandidates(
  invoice: Invoice,
  claimedId: number | null,
  known: readonly KnownDocument[],
  claimants: readonly Claimed[],
  rules: LinkRules,
): Candidate[] {
  const fitting = known.flatMap(each => {
    const { document } = each
    if (document === null || isGone(each)) return []
    const resolved = resolveNames(each, claimants, rules)
    const isNamed = namesOnly(resolved, invoice)
    if (!isNamed && document.id !== claimedId) return []
    return { document, names: isNamed ? resolved.names : [] }
  })
  const documents = fitting.map(({ document }) => document)
  const ranks: Record<string, number> = { [copyStatus]: 2, canceled: 3 }
  const rank = ({ id, status }: Document) => (id === claimedId ? 0 : (ranks[status] ?? 1))
  return fitting
    .filter(({ document }) => document.id === claimedId || !hasOriginal(document, documents))
    .sort((a, b) => rank(a.document) - rank(b.document) || a.document.id - b.document.id)
}

function hasOriginal(document: Document, others: readonly Document[]): boolean {
  return document.status === copyStatus && originalStatusOf(document, others) !== copyStatus
}

/** Returns a text such as "referring to in_a" or "whose proprietary_uid is pi_1, its payment". */
function describeTie({ document, names: [name] }: Candidate): string {
  const isUid = name?.field === 'proprietary_uid'
  const tie = isUid ? `whose proprietary_uid is ${document.uid}` : `referring to ${document.reference}`
  return name === undefined || name.kind === 'id' ? tie : `${tie}, its ${name.kind}`
}

/** Returns the sync state of an invoice that no document certifies. Returns a null state when the last link stays. */
function deriveWithout(
  { invoice, claim }: Claimed,
  known: readonly KnownDocument[],
  refusal: LinkRefusal | null,
  claimants: readonly Claimed[],
  rules: LinkRules,
  now: number,
): { state: SyncState | null; why: string } {
  const kept = keepsDocument(invoice, known)
  if (kept !== null) return { state: null, why: kept }
  const ignored = ignoredBecause(invoice, claim, rules)
  if (ignored !== null) return { state: 'ignored', why: ignored }
  if (claim.state === 'failed')
    return { state: 'failed', why: `it is recorded as failed: ${claim.error ?? 'no reason given'}` }
  if (claim.state === 'creating')
    return isOverdue(claim, rules.creatingTimeoutMs, now)
      ? { state: 'failed', why: `it has been creating since ${claim.attempted_at}, which is too long` }
      : {
          state: 'creating',
          why: `it is recorded as creating since ${claim.attempted_at ?? 'an unknown time'}`,
        }
  if (refusal !== null) return { state: 'failed', why: refusal.why }
  const claimed = known.find(({ id }) => id === claim.ix_id)
  if (claimed !== undefined && isGone(claimed))
    return {
      state: 'failed',
      why: `document ${claimed.id} is recorded, but the invoicing system no longer has it`,
    }
  if (claim.ix_id !== null)
    return { state: 'not_synced', why: `document ${claim.ix_id} is recorded, but was not seen yet` }
  if (!rules.isConnected)
    return { state: null, why: 'no invoicing system is connected, so the last known state stays' }
  const [obstacle] = known
    .toSorted((a, b) => a.id - b.id)
    .flatMap(each => findObstacle(each, invoice, claimants, rules) ?? [])
  return { state: 'not_synced', why: obstacle ?? 'no document claims it, and none is recorded' }
}

/** Returns why the last document is kept although no document was found now. Null when it is not kept. */
function keepsDocument({ ix_id }: Invoice, known: readonly KnownDocument[]): string | null {
  if (ix_id === null) return null
  const before = known.find(({ id }) => id === ix_id)
  if (before === undefined) return `document ${ix_id} was not read yet, so the last known state stays`
  if (before.document === null && !isGone(before))
    return `document ${ix_id} was missed once; the last known state stays until it is missed again`
  return null
}
