/** Records of the invoicing system that did not fit: logged once, and tried again later. */
import type { Logger } from 'pino'
import type { DocumentRecordKind } from '../../store/connector-store.ts'
import type { OperatorStore, WriteTransaction } from '../../store/store.ts'
import { type AskedRecord, saveSetAside, type Wanted } from '../set-aside.ts'

const triesPerRound = 20
/** Further ones are tried as if they had not been set aside. */
const maxRead = 10_000

/** As of the beginning of a round: names made by `asideName`. */
export type Aside = ReadonlySet<string>

export function asideName(kind: DocumentRecordKind, id: number | string): string {
  return `${kind} ${id}`
}

interface Stored {
  /** The system that records are stored under. */
  system: string
  store: Pick<OperatorStore, 'listSetAside'>
}

export async function readAside({ store, system }: Stored): Promise<Aside> {
  const records = await store.listSetAside(maxRead, system)
  return new Set(records.map(({ kind, id }) => asideName(kind as DocumentRecordKind, id)))
}

/** A document that does not fit, and one of which a field does not, are set aside as one record. */
const kindsAbout = { document: ['document', 'field'], client: ['client'], relations: ['relations'] } as const

export interface SetAsideRecord extends Wanted {
  id: number
}

/** Stores what answers say of records. Returns those that were not set aside before. */
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

/** Once their transaction is committed. */
export function reportAside(log: Logger, records: readonly SetAsideRecord[]): void {
  for (const { kind, id, reason } of records)
    log.warn({ kind, id, reason }, 'a record that does not fit was set aside')
}

/** The ids tried longest ago, and not since a moment; also those that a clock which was ahead has tried in the future. */
export async function readDueDocuments({ store, system }: Stored, since: number) {
  const oldest = await store.listSetAside(triesPerRound, system, { dueAt: Date.now() })
  const due = oldest.filter(({ last_at }) => last_at <= since || last_at > Date.now())
  const ids = (kind: DocumentRecordKind) => due.filter(each => each.kind === kind).map(({ id }) => Number(id))
  // A document of which a field did not fit is read again whole.
  const documents = [...new Set([...ids('document'), ...ids('field')])]
  return { documents, clients: ids('client'), relations: ids('relations') }
}
