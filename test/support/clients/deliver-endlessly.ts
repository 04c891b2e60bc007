/** Delivers changes of a store to its endpoints until it is killed: run with the store's address. */
import { pino } from 'pino'
import { deliverChanges } from '../../../src/export/webhooks/deliver-changes.ts'
import { openWriteStore } from '../../../src/store/engines.ts'

const store = await openWriteStore(process.argv[2] ?? '')
const log = pino({ level: 'silent' })
await deliverChanges({ store, allowPrivate: true, log, signal: new AbortController().signal })
