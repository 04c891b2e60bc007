/** Records of the invoicing system that did not fit: logged once, and tried again later. */
import type { Logger } from 'pino'
import type { DocumentRecordKind, SetAsideKey } from '../store/connector-store.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'

const triesPerRound = 20
/** Further ones are tried as if they had not been set aside. */
const rememberedAtMost = 10_000

export type SetAsideRecords = Awaited<ReturnType<typeof createSetAside>>

export async function createSetAside(system: string, store: WriteStore, log: Logger) {
  const keyOf = (kind: DocumentRecordKind, id: number): SetAsideKey => ({ system, kind, id: String(id) })
  const known = new Set((await store.listSetAside(rememberedAtMost, system)).map(nameOf))
  return {
    has: (kind: DocumentRecordKind, id: number) => known.has(nameOf(keyOf(kind, id))),
    async add(kind: DocumentRecordKind, id: number, reason: string): Promise<void> {
      const key = keyOf(kind, id)
      await store.transaction(tx => tx.setAside({ ...key, reason }, Date.now()))
      if (known.has(nameOf(key))) return
      known.add(nameOf(key))
      log.warn({ kind, id, reason }, 'a record that does not fit was set aside')
    },
    /** Clears records that fit now, or are gone, as far as they were set aside. */
    async clear(tx: WriteTransaction, kind: DocumentRecordKind, ids: readonly number[]): Promise<void> {
      const keys = ids.map(id => keyOf(kind, id)).filter(key => known.has(nameOf(key)))
      if (keys.length === 0) return
      await tx.clearSetAside(keys)
      for (const key of keys) tx.afterCommit(() => known.delete(nameOf(key)))
    },
    /** The ids tried longest ago, and not since a moment; also those that a clock which was ahead has tried in the future. */
    async due(since: number) {
      const oldest = await store.listSetAside(triesPerRound, system)
      const due = oldest.filter(({ last_at }) => last_at <= since || last_at > Date.now())
      for (const key of due) known.add(nameOf(key))
      const ids = (kind: DocumentRecordKind) =>
        due.filter(each => each.kind === kind).map(({ id }) => Number(id))
      // A document of which a field did not fit is read again whole.
      const documents = [...new Set([...ids('document'), ...ids('field')])]
      return { documents, clients: ids('client'), relations: ids('relations') }
    },
  }
}

function nameOf({ kind, id }: SetAsideKey): string {
  return `${kind} ${id}`
}
