import type { ConnectorStores, ConnectorWait } from '../store.ts'
import { createTurns } from './operator.ts'
import { openSqliteWriter } from './writer.ts'

/**
 * The lease has a connection of its own, and is written between two transactions, which come thick and fast. It is given back at
 * once, as the end must not wait for a transaction that waits for another process.
 */
export async function openSqliteConnector(
  path: string,
  { leasePatienceMs, onWait }: ConnectorWait,
): Promise<ConnectorStores> {
  const store = await openSqliteWriter(path, { ...(onWait && { onWait }) })
  try {
    const leases = await openSqliteWriter(path, { patienceMs: leasePatienceMs })
    const inTurn = createTurns()
    return {
      store: { ...store, transaction: work => inTurn(() => store.transaction(work)) },
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
