/** Whom documents are made out to: only the comparison of tax ids needs it. */
import type { Logger } from 'pino'
import { type DocumentClient, type DocumentSource, SourceError } from '../sources.ts'
import type { NextStamp } from '../store/stamps.ts'
import type { WriteStore } from '../store/store.ts'
import type { SetAsideRecords } from './documents-set-aside.ts'
import { sideBySide } from './side-by-side.ts'

const atOnce = 16

export interface ClientReaderOptions {
  source: DocumentSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  nextStamp: NextStamp
  setAside: SetAsideRecords
}

/** Reads the clients with these ids. A key that may not read clients is told once, and is no failure. */
export function createClientReader(options: ClientReaderOptions) {
  const { source, store, log, signal, nextStamp, setAside } = options
  let isToldForbidden = false

  async function read(id: number): Promise<void> {
    signal.throwIfAborted()
    const askedAt = nextStamp()
    let client: DocumentClient | null
    try {
      client = await source.fetchClient(id)
    } catch (error) {
      if (!(error instanceof SourceError && error.scope === 'record')) throw error
      return setAside.add('client', id, error.message)
    }
    await store.transaction(async tx => {
      await tx.saveClient(id, client?.tax_id ?? null, askedAt)
      await setAside.clear(tx, 'client', [id])
    })
  }

  return async (ids: AsyncIterable<number> | Iterable<number>): Promise<void> => {
    try {
      await sideBySide(ids, atOnce, read)
    } catch (error) {
      if (!(error instanceof SourceError && error.scope === 'access')) throw error
      if (!isToldForbidden)
        log.warn(`the ${source.name} key may not read clients: their tax ids are not compared`)
      isToldForbidden = true
    }
  }
}
