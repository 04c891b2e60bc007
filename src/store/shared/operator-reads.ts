/** Reads of commands that only look; the writer does them over its own connection. */
import type { OperatorStore } from '../store.ts'
import { connectorReads } from './connector-state.ts'
import { contentsReads } from './contents.ts'
import { credentialReads } from './credentials.ts'
import type { Db } from './db.ts'
import { endpointReads } from './endpoints.ts'
import { documentReads } from './read-documents.ts'
import { invoiceReads } from './read-invoices.ts'
import { sharedReads } from './shared-rows.ts'

export function operatorReads(
  db: Db,
): Omit<OperatorStore, 'walkInvoices' | 'checkCounts' | 'readChanges' | 'close'> {
  return {
    ...documentReads(db),
    ...connectorReads(db),
    ...contentsReads(db),
    ...invoiceReads(db),
    ...sharedReads(db),
    ...credentialReads(db),
    ...endpointReads(db),
  }
}
