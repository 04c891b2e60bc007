/** Reads the clients of documents to compare tax IDs, and links the documents again whose tax ID changed. */
import type { Document } from '../../domain/document.ts'
import { isNobody } from '../../domain/link/link.ts'
import { invoicesNamedBy } from '../../domain/link/related.ts'
import type { WriteTransaction } from '../../store/store.ts'
import { forEachConcurrently, readBatches } from '../concurrency.ts'
import { relinkInvoices } from '../link-invoices.ts'
import type { DocumentContext, Round } from './document-round.ts'
import { atOnce, fetchRecord, unlessForbidden } from './fetch-documents.ts'
import { saveAside } from './set-aside-documents.ts'

/**
 * Stamp of a client while its documents are being linked. After a crash,
 * a client with this stamp is due, and its documents are linked again.
 */
const beingLinked = 1

export function fetchClients(
  context: DocumentContext,
  { source, counts }: Round,
  ids: AsyncIterable<number> | Iterable<number>,
): Promise<void> {
  const message = `the ${source.name} key may not read clients: tax ids are not compared, and no number ties a document`
  return unlessForbidden(context, message, () =>
    forEachConcurrently(ids, atOnce, async id => {
      const found = await fetchRecord(context, 'client', id, () => source.fetchClient(id))
      if (found !== undefined)
        counts.addRelinked(await saveClient(context, id, found.record?.tax_id ?? null, found.askedAt))
    }),
  )
}

/** Saves a client and links the documents of a changed client again. Returns the number of changed invoices. */
async function saveClient(
  context: DocumentContext,
  id: number,
  taxId: string | null,
  askedAt: number,
): Promise<number> {
  const { store, enqueue } = context
  let changed = 0
  if (await enqueue(() => store.transaction(tx => recordTaxId(tx, id, taxId)))) {
    const read = (after: Document | null, limit: number) => store.readOfClient(id, after?.id ?? 0, limit)
    for await (const some of readBatches(read))
      changed += await enqueue(() => store.transaction(tx => relinkDocuments(tx, context, some)))
  }
  await enqueue(() =>
    store.transaction(async tx => {
      await tx.saveClient(id, taxId, askedAt)
      await saveAside(tx, context.system, 'client', new Map([[id, { askedAt, wanted: null }]]))
    }),
  )
  return changed
}

/** Returns whether the client's documents must be linked again. */
async function recordTaxId(tx: WriteTransaction, id: number, taxId: string | null): Promise<boolean> {
  const before = await tx.findClient(id)
  if (!before?.observed_stamp) await tx.keepClientTaxId(id, taxId)
  const last = before?.tax_id ?? null
  const isSame = last === taxId || (isNobody(last) && isNobody(taxId))
  if (isSame && before?.observed_stamp !== beingLinked) return false
  await tx.saveClient(id, taxId, beingLinked)
  return true
}

async function relinkDocuments(
  tx: WriteTransaction,
  context: DocumentContext,
  documents: readonly Document[],
): Promise<number> {
  const { rules, guard } = context
  const ids = documents.map(({ id }) => id)
  // Locks the documents, so that another transaction that links one by the former tax ID ends first.
  await tx.findDocuments({ ids, references: [] })
  const wanted = { documents: ids, ...invoicesNamedBy(documents, rules) }
  return (await relinkInvoices(tx, wanted, 'client', { rules, guard, now: Date.now() })).length
}
