/** Both systems, a store, and the connectors between them. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  createDocuments,
  type DocumentAccount,
  type DocumentOptions,
} from '../../../sandbox/invoicexpress/account.ts'
import {
  type InvoiceXpressSandbox,
  type InvoiceXpressOptions as SandboxOptions,
  startInvoiceXpressSandbox,
} from '../../../sandbox/invoicexpress/server.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import { defaultRules, type LinkRules } from '../../../src/domain/link/link.ts'
import type { Pace } from '../../../src/sources/calls/paced-calls.ts'
import { createDocumentSource } from '../../../src/sources/invoicexpress/document-source.ts'
import type { DocumentSource } from '../../../src/sources/source.ts'
import { createStamps } from '../../../src/store/stamps.ts'
import {
  createDocumentSync,
  type DocumentSync,
  type DocumentSyncOptions,
} from '../../../src/sync/documents/documents.ts'
import type { Engine } from '../databases/engines.ts'
import { noGuard } from './no-guard.ts'
import { createLog, type Rig, type RigOptions, readAll, startRig } from './sync.ts'

export interface DocumentRig extends Rig {
  documents: DocumentAccount
  ix: InvoiceXpressSandbox
  sync: DocumentSync
  documentSource: DocumentSource
  /** All of both systems, once. */
  syncAll(): Promise<void>
  reconnect(options?: Partial<DocumentSyncOptions>): Promise<DocumentSync>
  /** One that waits so long for an answer: where some never come. */
  reconnectImpatient(waitMs: number): Promise<DocumentSync>
  invoice(id: string): Promise<Invoice>
  /** Those whose document is not as it should be. */
  unusual(): Promise<Invoice[]>
  warned: { level: number; msg: string }[]
}

const key = 'canary_key_of_invoicexpress'

export async function startDocuments(
  t: TestContext,
  engine: Engine,
  options: RigOptions & {
    documents?: DocumentOptions
    ix?: Partial<SandboxOptions>
    rules?: Partial<LinkRules>
    attempts?: number
    ixPace?: Partial<Pace>
    /** How long an answer may take: far longer than any does, unless some never come. */
    ixWaitMs?: number
  } = {},
): Promise<DocumentRig> {
  const {
    documents: wanted,
    ix: server,
    rules: given,
    attempts = 4,
    ixPace,
    ixWaitMs = 60_000,
    ...rest
  } = options
  // A round asks for each month, and for each client: some are enough. Lines have no part in this.
  const rig = await startRig(t, engine, { days: 40, lines: 1, customers: 6, ...rest })
  const documents = createDocuments(rig.account, wanted)
  const ix = await startInvoiceXpressSandbox({ documents, apiKey: key, ...server })
  t.after(() => ix.close())
  const openSource = (timeoutMs: number) =>
    createDocumentSource(
      { account: null, apiKey: key, base: ix.address, timeoutMs },
      { perSecond: 10_000, attempts, patienceMs: 5 * timeoutMs, ...ixPace },
    )
  const source = openSource(ixWaitMs)
  const { log, logged: warned } = createLog()
  const rules = { ...defaultRules, ...given }
  const reconnect: DocumentRig['reconnect'] = async more =>
    createDocumentSync({
      guard: noGuard,
      nextStamp: createStamps(await rig.store.readLastObserved()),
      source,
      store: rig.store,
      rules,
      log,
      signal: new AbortController().signal,
      fetchesPerRun: Number.POSITIVE_INFINITY,
      // Rounds follow each other at once here.
      missesApartMs: 0,
      ...more,
    })
  const connector = await rig.connect({ rules })
  const sync = await reconnect()
  t.after(() => assert.ok(!JSON.stringify([warned, rig.logged]).includes(key), 'the key is in a log line'))
  return {
    ...rig,
    connector,
    documents,
    ix,
    sync,
    documentSource: source,
    warned,
    reconnect,
    reconnectImpatient: waitMs => reconnect({ source: openSource(waitMs) }),
    async syncAll() {
      await connector.backfill()
      await connector.catchUp()
      while ((await sync.sweepMonth()) !== null);
      await sync.sweepRecent()
      await sync.refreshOpen()
    },
    async unusual() {
      const records = await readAll(rig.store)
      return records.filter(({ id }) => documents.states.has(id)).map(({ summary }) => JSON.parse(summary))
    },
    async invoice(id) {
      const [found] = await rig.store.findLinkedById(id)
      assert.ok(found !== undefined, `there is no ${id}`)
      return JSON.parse(found.summary)
    },
  }
}

/** Every finalized invoice has its correct document, and all is synchronized. */
export async function startOrdinary(
  t: TestContext,
  engine: Engine,
  options: Parameters<typeof startDocuments>[2] = {},
): Promise<DocumentRig> {
  const rig = await startDocuments(t, engine, { ...options, documents: { states: 'ordinary' } })
  await rig.syncAll()
  return rig
}

/** The id of an invoice that is correctly documented, and its document's. */
export function anyOrdinary({ account, documents }: DocumentRig, status = 'paid'): [string, number] {
  for (const { id, metadata, status: found } of account.invoices.values())
    if (found === status && !documents.states.has(id) && metadata.ix_id !== undefined)
      return [id, Number(metadata.ix_id)]
  throw new Error(`no ordinary ${status} invoice`)
}
