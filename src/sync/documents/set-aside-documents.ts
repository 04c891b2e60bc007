/** Records of the invoicing system that did not fit: logged once, and tried again later. */
import type { DocumentRecordKind, SetAside } from '../../store/connector-store.ts'
import type { WriteTransaction } from '../../store/store.ts'
import { dueAtOf } from '../set-aside.ts'
import type { DocumentContext } from './document-context.ts'

const triesPerRound = 20
/** Further ones are tried as if they had not been set aside. */
const readAtMost = 10_000

type Context = Pick<DocumentContext, 'system' | 'store' | 'log' | 'enqueue'>

/** As of the beginning of a round: names made by `asideName`. */
export type Aside = ReadonlySet<string>

export function asideName(kind: DocumentRecordKind, id: number | string): string {
  return `${kind} ${id}`
}

export async function readAside({ store, system }: Pick<Context, 'system' | 'store'>): Promise<Aside> {
  const records = await store.listSetAside(readAtMost, system)
  return new Set(records.map(({ kind, id }) => asideName(kind as DocumentRecordKind, id)))
}

export function setAsideDocument(
  { system, store, log, enqueue }: Context,
  kind: DocumentRecordKind,
  id: number,
  reason: string,
): Promise<void> {
  return enqueue(async () => {
    const wasAside = await store.transaction(async tx => {
      const [before] = await find(tx, system, [id], [kind])
      const now = Date.now()
      const key = { system, kind, id: String(id) }
      await tx.setAside({ ...key, reason, due_at: dueAtOf(kind, key.id, now) }, now)
      return before !== undefined
    })
    if (!wasAside) log.warn({ kind, id, reason }, 'a record that does not fit was set aside')
  })
}

/** Clears records that fit now, or are gone. */
export async function clearAside(
  tx: WriteTransaction,
  { system }: Pick<Context, 'system'>,
  ids: readonly number[],
  kinds: readonly DocumentRecordKind[],
): Promise<void> {
  const found = await find(tx, system, ids, kinds)
  if (found.length > 0) await tx.clearSetAside(found)
}

/** The ids tried longest ago, and not since a moment; also those that a clock which was ahead has tried in the future. */
export async function readDueDocuments({ store, system }: Pick<Context, 'system' | 'store'>, since: number) {
  const oldest = await store.listSetAside(triesPerRound, system, { dueAt: Date.now() })
  const due = oldest.filter(({ last_at }) => last_at <= since || last_at > Date.now())
  const ids = (kind: DocumentRecordKind) => due.filter(each => each.kind === kind).map(({ id }) => Number(id))
  // A document of which a field did not fit is read again whole.
  const documents = [...new Set([...ids('document'), ...ids('field')])]
  return { documents, clients: ids('client'), relations: ids('relations') }
}

async function find(
  tx: WriteTransaction,
  system: string,
  ids: readonly number[],
  kinds: readonly string[],
): Promise<SetAside[]> {
  const found = ids.length === 0 ? [] : await tx.findSetAside(ids.map(String))
  return found.filter(row => row.system === system && kinds.includes(row.kind))
}
