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

/** A connection has one transaction at a time: the next one waits for the last. */
function createTurns() {
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
      db.checkPlace()
      // Rows that are written by another version's rules would be wrong for all who read them.
      if (version.get()?.user_version !== schema.migrations.length) checkSchema(db)
      const result = await work(writing)
      for (const { sql, values } of await writing.finish()) await shared.query(sql, values)
      db.checkPlace()
      return result
    })
    // A commit to a file that was taken away meanwhile is not stored.
    db.checkPlace()
    return result
  }

  const inTurn = createTurns()
  const checkInTurn = (customers: readonly string[]) => inTurn(() => check(shared, customers))
  const transact = <T>(work: (writing: Writing) => Promise<T>): Promise<T> =>
    inTurn(() => runTransaction(work))
  const repair = (customerId: string) =>
    transact(({ counters }) => repairCustomer(shared, counters, customerId))
  /** Each call is a transaction of its own. */
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
    checkCounts: onProgress => recount(shared, checkInTurn, null, onProgress),
    repairCounts: onProgress => recount(shared, checkInTurn, repair, onProgress),
    ...inTransactions({
      ...leaseWrites(shared),
      ...credentialWrites(shared),
      ...webhookCommands(shared),
      ...lifeWrites(shared),
    }),
  }
}

/** The lease has a connection of its own, and takes turns with transactions; but it is given back at once. */
export function takeTurns({ store, leases }: ConnectorStores): ConnectorStores {
  const inTurn = createTurns()
  return {
    store: { ...store, transaction: work => inTurn(() => store.transaction(work)) },
    leases: {
      ...leases,
      takeLease: (seen, holder) => inTurn(() => leases.takeLease(seen, holder)),
      renewLease: epoch => inTurn(() => leases.renewLease(epoch)),
    },
  }
}
