import type { ConnectorStores, ConnectorWait } from '../store.ts'
import { openSqliteWriter } from './writer.ts'
import { openWriterThread } from './writer-thread.ts'

/**
 * The connector's store is in a thread of its own. Its lease is written between two transactions, which come thick and fast; it
 * is given back at once, as the end must not wait for a transaction that waits for another process.
 */
export async function openSqliteConnector(
  path: string,
  { leasePatienceMs, onWait }: ConnectorWait,
): Promise<ConnectorStores> {
  const { store, inTurn } = await openWriterThread(path, { ...(onWait && { onWait }) })
  try {
    const leases = await openSqliteWriter(path, { patienceMs: leasePatienceMs })
    return {
      store,
      leases: {
        ...leases,
        takeLease: (seen, holder) => inTurn(() => leases.takeLease(seen, holder)),
        renewLease: epoch => inTurn(() => leases.renewLease(epoch)),
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}
