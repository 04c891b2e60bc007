/** Set-aside records of the invoicing system: logged once, and tried again later. */
import type { Logger } from 'pino'
import type { DocumentRecordKind } from '../../store/connector-store.ts'
import type { OperatorStore, WriteTransaction } from '../../store/store.ts'
import { type AskedRecord, saveSetAside, type Wanted } from '../set-aside.ts'

const triesPerRound = 20
/** Maximum number of set-aside records that a round reads. Any others are tried as if they were not set aside. */
const maxRead = 10_000

/** Names of the records that were set aside at the beginning of a round, made by `asideName`. */
export type Aside = ReadonlySet<string>

export function asideName(kind: DocumentRecordKind, id: number | string): string {
  return `${kind} ${id}`
}

interface Stored {
  /** The system under which records are stored. */
  system: string
  store: Pick<OperatorStore, 'listSetAside'>
}

export async function readAside({ store, system }: Stored): Promise<Aside> {
  const records = await store.listSetAside(maxRead, system)
  return new Set(records.map(({ kind, id }) => asideName(kind as DocumentRecordKind, id)))
}

/** Kinds under which a record can be set aside. A document has one entry, whether the whole document or one field failed the checks. */
const kindsAbout = { document: ['document', 'field'], client: ['client'], relations: ['relations'] } as const

export interface SetAsideRecord extends Wanted {
  id: number
}

/** Sets records aside or clears them, as their answers require. Returns the records that were not set aside before. */
export async function saveAside(
  tx: WriteTransaction,
  system: string,
  about: keyof typeof kindsAbout,
  said: ReadonlyMap<number, AskedRecord>,
): Promise<SetAsideRecord[]> {
  const records = new Map([...said].map(([id, record]) => [String(id), record]))
  const before = await saveSetAside(tx, system, kindsAbout[about], records)
  return [...said].flatMap(([id, { wanted }]) =>
    wanted === null || before.has(String(id)) ? [] : { ...wanted, id },
  )
}

/** Logs newly set-aside records. Called after their transaction is committed. */
export function reportAside(log: Logger, records: readonly SetAsideRecord[]): void {
  for (const { kind, id, reason } of records)
    log.warn({ kind, id, reason }, 'a record could not be read and was set aside')
}

/**
 * Returns the ids of due records, those tried longest ago first. A record that was tried after `since` is left out, unless a wrong clock
 * dated its try in the future.
 */
export async function readDueDocuments({ store, system }: Stored, since: number) {
  const oldest = await store.listSetAside(triesPerRound, system, { dueAt: Date.now() })
  const due = oldest.filter(({ last_at }) => last_at <= since || last_at > Date.now())
  const ids = (kind: DocumentRecordKind) => due.filter(each => each.kind === kind).map(({ id }) => Number(id))
  // A document with a field that failed the checks is fetched again as a whole.
  const documents = [...new Set([...ids('document'), ...ids('field')])]
  return { documents, clients: ids('client'), relations: ids('relations') }
}
