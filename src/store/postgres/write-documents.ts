/** Documents, links and the journal, written in bulk within a transaction. */
import type { PoolClient } from 'pg'
import type { Claim, Document } from '../../document.ts'
import type { Invoice, InvoiceKey, InvoiceRecord } from '../../invoice.ts'
import { serializeSummary } from '../../invoice-json.ts'
import {
  type DocumentRow,
  type DocumentWrites,
  type JournalEntry,
  type KnownDocument,
  readDocumentRow,
} from '../document-store.ts'
import { type SearchText, searchText } from '../read-model/search.ts'
import type { Counting } from './counts.ts'
import type { SharedRows } from './shared-rows.ts'

const entriesKept = 50

/** What a document is found by. */
interface Names {
  ids: readonly number[]
  references: readonly string[]
}

/**
 * Whoever reads documents to tie invoices to them shares their names, and whoever changes documents has their names alone:
 * else a document and its invoice that arrive at the same moment would not see each other. Always in one order.
 */
async function lockNames(
  client: PoolClient,
  how: 'alone' | 'shared',
  { ids, references }: Names,
): Promise<void> {
  const lock = how === 'alone' ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared'
  await client.query({
    name: `lock-names-${how}`,
    text: `
      SELECT ${lock}(name) FROM (
        SELECT DISTINCT hashtextextended(given, 1) AS name FROM unnest($1::text[]) given ORDER BY name) names`,
    values: [[...ids.map(id => `document ${id}`), ...references.map(text => `reference ${text}`)]],
  })
}

export const documentColumns = 'id, body, misses, observed_at'

export const findDocuments = `
  SELECT ${documentColumns} FROM fatura.documents WHERE id = ANY ($1)
  UNION
  SELECT ${documentColumns} FROM fatura.documents WHERE reference = ANY ($2)
  ORDER BY id`

export function documentWrites(
  client: PoolClient,
  counting: Counting,
  shared: Pick<SharedRows, 'raiseObserved'>,
): DocumentWrites {
  return {
    async saveDocuments(documents, observedAt) {
      await lockNames(client, 'alone', {
        ids: documents.map(({ id }) => id),
        references: documents.flatMap(({ reference }) => reference ?? []),
      })
      await saveDocuments(client, documents, observedAt)
      shared.raiseObserved(observedAt)
    },
    async missDocument(id, observedAt, unlessSince = observedAt) {
      await lockNames(client, 'alone', { ids: [id], references: [] })
      await client.query(
        `INSERT INTO fatura.documents AS stored (id, misses, observed_at) VALUES ($1, 1, $2)
         ON CONFLICT (id) DO UPDATE SET misses = stored.misses + 1, observed_at = excluded.observed_at
         WHERE stored.observed_at <= excluded.observed_at AND (stored.misses = 0 OR stored.observed_at <= $3)`,
        [id, observedAt, unlessSince],
      )
      shared.raiseObserved(observedAt)
    },
    async saveClient(id, taxId, observedAt) {
      await client.query(
        `INSERT INTO fatura.document_clients (id, tax_id, observed_at) VALUES ($1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET tax_id = excluded.tax_id, observed_at = excluded.observed_at`,
        [id, taxId, observedAt],
      )
    },
    async findDocuments(wanted) {
      await lockNames(client, 'shared', wanted)
      const found = await readDocuments(client, wanted)
      // What was found by its reference alone may be about to lose it.
      const others = found.map(({ id }) => id).filter(id => !wanted.ids.includes(id))
      if (others.length === 0) return found
      await lockNames(client, 'shared', { ids: others, references: [] })
      return readDocuments(client, wanted)
    },
    async findLinked({ documents, invoices }) {
      const { rows } = await client.query<InvoiceKey>({
        name: 'find-linked',
        text: `
          SELECT customer_id, invoice_id AS id FROM fatura.links WHERE claimed_id = ANY ($1)
          UNION
          SELECT customer_id, invoice_id FROM fatura.links WHERE ix_id = ANY ($1)
          UNION
          SELECT customer_id, invoice_id FROM fatura.links WHERE invoice_id = ANY ($2)`,
        values: [documents, invoices],
      })
      return rows
    },
    async relinkInvoices(invoices) {
      await relinkInvoices(client, counting, invoices)
    },
    async saveEntries(entries) {
      await saveEntries(client, entries)
    },
  }
}

async function readDocuments(client: PoolClient, { ids, references }: Names): Promise<KnownDocument[]> {
  const { rows } = await client.query<DocumentRow>({
    name: 'find-documents',
    text: findDocuments,
    values: [ids, references],
  })
  return rows.map(readDocumentRow)
}

async function saveDocuments(client: PoolClient, documents: readonly Document[], observedAt: number) {
  // Each once, the last one given: a page may hold one twice while documents are being made.
  const given = [...new Map(documents.map(document => [document.id, document])).values()]
  if (given.length === 0) return
  await client.query({
    name: 'save-documents',
    text: `
      INSERT INTO fatura.documents AS stored (id, status, reference, date, client_id, body, misses, observed_at)
      SELECT *, 0, $7::bigint
      FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, reference = excluded.reference, date = excluded.date,
        client_id = excluded.client_id, body = excluded.body, misses = 0, observed_at = excluded.observed_at
      WHERE stored.observed_at <= excluded.observed_at`,
    values: [
      given.map(({ id }) => id),
      given.map(({ status }) => status),
      given.map(({ reference }) => reference),
      given.map(({ date }) => date),
      given.map(({ client_id }) => client_id),
      given.map(document => JSON.stringify(document)),
      observedAt,
    ],
  })
}

/** Records of the payment platform's, which alone have claims. */
export async function saveLinks(client: PoolClient, records: readonly InvoiceRecord[]): Promise<void> {
  const linked = records.flatMap(({ invoice, claim }) => (claim === undefined ? [] : [{ invoice, claim }]))
  if (linked.length === 0) return
  const claims: readonly Claim[] = linked.map(({ claim }) => claim)
  const invoices = linked.map(({ invoice }) => invoice)
  await client.query({
    name: 'save-links',
    text: `
      INSERT INTO fatura.links AS stored (customer_id, invoice_id, state, claimed_id, ix_id, claim)
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[])
      ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
        ix_id = excluded.ix_id, claim = excluded.claim
      WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id`,
    values: [
      invoices.map(({ customer_id }) => customer_id),
      invoices.map(({ id }) => id),
      claims.map(({ state }) => state),
      claims.map(({ ix_id }) => ix_id),
      invoices.map(({ ix_id }) => ix_id),
      claims.map(claim => JSON.stringify(claim)),
    ],
  })
  await wantClients(client, invoices)
}

/** Notes whom the documents are made out to, to be read some time. */
async function wantClients(client: PoolClient, invoices: readonly Invoice[]): Promise<void> {
  const documents = invoices.flatMap(({ ix_id }) => ix_id ?? [])
  if (documents.length === 0) return
  await client.query({
    name: 'want-clients',
    text: `
      INSERT INTO fatura.document_clients (id, observed_at)
      SELECT DISTINCT client_id, 0 FROM fatura.documents WHERE id = ANY ($1) AND client_id IS NOT NULL
      ORDER BY client_id ON CONFLICT DO NOTHING`,
    values: [documents],
  })
}

type Relinked = { customer_id: string; issued_at: number; left_id: number; party_id: number }

async function relinkInvoices(
  client: PoolClient,
  counting: Counting,
  invoices: readonly Invoice[],
): Promise<void> {
  if (invoices.length === 0) return
  await counting.lock(invoices.map(({ customer_id }) => customer_id))
  const searches = invoices.map(searchText)
  await saveParties(
    client,
    invoices.map(({ customer_id }, i) => ({ customer_id, search: searches[i] as SearchText })),
  )
  const keys = [invoices.map(({ customer_id }) => customer_id), invoices.map(({ id }) => id)]
  const { rows: relinked } = await client.query<Relinked>({
    name: 'relink-invoices',
    text: `
      UPDATE fatura.invoices AS stored SET ix_status = given.ix_status, party_id = given.party_id,
        own_text = convert_to(given.own_text, 'UTF8'), summary = given.summary
      FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[])
        AS given (customer_id, id, ix_status, party_id, own_text, summary)
      JOIN fatura.invoices AS before USING (customer_id, id)
      WHERE stored.customer_id = given.customer_id AND stored.id = given.id
      RETURNING stored.customer_id, stored.issued_at, before.party_id AS left_id, stored.party_id`,
    values: [
      ...keys,
      invoices.map(({ ix_status }) => ix_status),
      searches.map(({ party_id }) => party_id),
      searches.map(({ own }) => own),
      invoices.map(serializeSummary),
    ],
  })
  for (const { customer_id, issued_at, left_id, party_id } of relinked) {
    counting.note(customer_id, issued_at)
    if (left_id !== party_id) counting.leaveParty(customer_id, left_id)
  }
  await client.query({
    name: 'relink',
    text: `
      UPDATE fatura.links AS stored SET ix_id = given.ix_id
      FROM unnest($1::text[], $2::text[], $3::bigint[]) AS given (customer_id, id, ix_id)
      WHERE stored.customer_id = given.customer_id AND stored.invoice_id = given.id`,
    values: [...keys, invoices.map(({ ix_id }) => ix_id)],
  })
  await wantClients(client, invoices)
}

/** Whom invoices are made out to, each once. */
export async function saveParties(
  client: PoolClient,
  given: readonly { customer_id: string; search: SearchText }[],
): Promise<void> {
  const parties = new Map(given.map(each => [`${each.customer_id} ${each.search.party_id}`, each]))
  await client.query({
    name: 'save-parties',
    text: `
      INSERT INTO fatura.parties (customer_id, party_id, text)
      SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING`,
    values: [
      [...parties.values()].map(({ customer_id }) => customer_id),
      [...parties.values()].map(({ search }) => search.party_id),
      [...parties.values()].map(({ search }) => search.party),
    ],
  })
}

async function saveEntries(client: PoolClient, entries: readonly JournalEntry[]): Promise<void> {
  for (const { id, customer_id, cause, type, happened_at, at, outcome, detail } of entries) {
    await client.query({
      name: 'save-entry',
      text: `
        INSERT INTO fatura.journal (customer_id, invoice_id, cause, type, happened_at, at, outcome, detail)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
      values: [customer_id, id, cause, type, happened_at, at, outcome, detail],
    })
    await client.query({
      name: 'trim-entries',
      text: `
        DELETE FROM fatura.journal WHERE customer_id = $1 AND invoice_id = $2 AND at < (
          SELECT at FROM fatura.journal WHERE customer_id = $1 AND invoice_id = $2
          ORDER BY at DESC LIMIT 1 OFFSET ${entriesKept - 1})`,
      values: [customer_id, id],
    })
  }
}
