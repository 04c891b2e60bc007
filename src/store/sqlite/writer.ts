import { leaseWrites } from '../sql/connector-state.ts'
import { credentialWrites } from '../sql/credentials.ts'
import { check, recount, repairCustomer } from '../sql/recount.ts'
import { lifeWrites } from '../sql/shared-rows.ts'
import { startWriting, type Writing } from '../sql/transaction-writes.ts'
import { webhookCommands } from '../sql/webhooks.ts'
import type { ConnectorStores, LockWait, WriteStore } from '../store.ts'
import { closeUnless, openReadWrite } from './database.ts'
import { checkSchema, schema } from './migrations.ts'
import { readsOf } from './operator.ts'
import { createDb } from './shared-db.ts'
import { engineWrites } from './write-invoices.ts'

/** A connection has only one transaction at a time. Each one waits for the previous one to end. */
function createQueue() {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

export async function openSqliteWriter(path: string, wait: LockWait = {}): Promise<WriteStore> {
  const db = closeUnless(await openReadWrite(path, { create: false, ...wait }), checkSchema)
  const version = db.prepare('PRAGMA user_version')
  const shared = createDb(db)
  const engine = engineWrites(db, shared)

  async function runTransaction<T>(work: (writing: Writing) => Promise<T>): Promise<T> {
    const writing = startWriting(shared, engine)
    const result = await db.transact(wait, async () => {
      db.checkFile()
      // Rows written by the rules of another schema version would be wrong for all readers.
      if (version.get()?.user_version !== schema.migrations.length) checkSchema(db)
      const result = await work(writing)
      for (const { sql, values } of await writing.finish()) await shared.query(sql, values)
      db.checkFile()
      return result
    })
    // A commit to a file that was removed meanwhile is lost. This check then throws.
    db.checkFile()
    return result
  }

  const enqueue = createQueue()
  const enqueueCheck = (customers: readonly string[]) => enqueue(() => check(shared, customers))
  const transact = <T>(work: (writing: Writing) => Promise<T>): Promise<T> =>
    enqueue(() => runTransaction(work))
  const repair = (customerId: string) =>
    transact(({ counters }) => repairCustomer(shared, counters, customerId))
  /** Makes each method run in a transaction of its own. */
  const inTransactions = <Methods extends object>(methods: Methods): Methods =>
    Object.fromEntries(
      Object.entries(methods).map(([name, method]) => [
        name,
        (...given: never[]) => transact(() => method(...given)),
      ]),
    ) as Methods

  return {
    ...readsOf(db, shared),
    transaction: work => transact(({ tx }) => work(tx)),
    checkCounts: onProgress => recount(shared, enqueueCheck, null, onProgress),
    repairCounts: onProgress => recount(shared, enqueueCheck, repair, onProgress),
    ...inTransactions({
      ...leaseWrites(shared),
      ...credentialWrites(shared),
      ...webhookCommands(shared),
      ...lifeWrites(shared),
    }),
  }
}

/**
 * The lease has a connection of its own. Its transactions and the connector's run one after another. Only releasing the lease does not
 * wait.
 */
export function takeTurns({ store, leases }: ConnectorStores): ConnectorStores {
  const enqueue = createQueue()
  return {
    store: { ...store, transaction: work => enqueue(() => store.transaction(work)) },
    leases: {
      ...leases,
      takeLease: (seen, holder) => enqueue(() => leases.takeLease(seen, holder)),
      renewLease: epoch => enqueue(() => leases.renewLease(epoch)),
    },
  }
}
