/** Reads related documents and QR codes. Also fetches a document by its id when lists left some of its fields out. */
import type { Relations } from '../../domain/document.ts'
import type { RelationsKey } from '../../store/document-store.ts'
import { forEachConcurrently } from '../concurrency.ts'
import { relinkInvoices } from '../link-invoices.ts'
import type { DocumentContext, Round } from './document-round.ts'
import { atOnce, fetchDocument, fetchRecord, unlessForbidden } from './fetch-documents.ts'
import { saveAside } from './set-aside-documents.ts'

const savedAtOnce = 50

interface Found {
  id: number
  record: Relations | null
  askedAt: number
}

export function fetchRelations(
  context: DocumentContext,
  round: Round,
  keys: readonly RelationsKey[],
): Promise<void> {
  const message = `the ${round.source.name} key may not read related documents or QR codes`
  return unlessForbidden(context, message, async () => {
    for (let at = 0; at < keys.length; at += savedAtOnce)
      await fetchSome(context, round, keys.slice(at, at + savedAtOnce))
  })
}

/** Fetches relations. Answers that arrived before a failure are stored. */
async function fetchSome(
  context: DocumentContext,
  round: Round,
  keys: readonly RelationsKey[],
): Promise<void> {
  const found: Found[] = []
  try {
    await forEachConcurrently(keys, atOnce, async key => {
      if (key.isPartial) await fetchDocument(context, round, key)
      const { id, hasQr } = key
      const ask = () => round.source.fetchRelations(id, hasQr)
      const one = await fetchRecord(context, 'relations', id, ask)
      if (one !== undefined) found.push({ id, ...one })
    })
  } finally {
    if (found.length > 0) round.counts.addRelinked(await saveRelations(context, found))
  }
}

/** Returns the number of changed invoices. */
function saveRelations(context: DocumentContext, found: readonly Found[]): Promise<number> {
  const { rules, guard } = context
  const ids = found.map(({ id }) => id)
  return context.enqueue(() =>
    context.store.transaction(async tx => {
      for (const { id, record, askedAt } of found) await tx.saveRelations(id, record, askedAt)
      const said = new Map(found.map(({ id, askedAt }) => [id, { askedAt, wanted: null }]))
      await saveAside(tx, context.system, 'relations', said)
      return (await relinkInvoices(tx, { documents: ids }, 'relations', { rules, guard, now: Date.now() }))
        .length
    }),
  )
}
