/** The days that a search looks through: made again where they changed, within the transaction that changes them. */
import type { DatabaseSync } from 'node:sqlite'
import { chooseToSign, countParts, leastSigned, signDay } from '../read-model/search-signs.ts'
import {
  dayColumns,
  hasSameTexts,
  makeDay,
  type SearchDay,
  type SearchRow,
  sizeOf,
  textsOf,
} from './search-days.ts'

type StoredDay = SearchDay & { signed_size: number }

export function keepDays(db: DatabaseSync) {
  const readDay = db.prepare(
    `SELECT ${dayColumns}, signed_size FROM search_days WHERE customer_id = ?1 AND day = ?2`,
  )
  const insertDay = db.prepare(`
    INSERT INTO search_days (customer_id, day, ${dayColumns}, signed_size, is_signed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)`)
  const changeStates = db.prepare(
    'UPDATE search_days SET states = ?3, marks = ?4 WHERE customer_id = ?1 AND day = ?2',
  )
  const changeTexts = db.prepare(`
    UPDATE search_days SET (${dayColumns}) = (?3, ?4, ?5, ?6), is_signed = ?7 WHERE customer_id = ?1 AND day = ?2`)
  const deleteDay = db.prepare('DELETE FROM search_days WHERE customer_id = ?1 AND day = ?2')
  const deleteDays = db.prepare('DELETE FROM search_days WHERE customer_id = ?1')
  const findUnsigned = db.prepare('SELECT day FROM search_days WHERE customer_id = ?1 AND is_signed = 0')
  const noteSigned = db.prepare(
    'UPDATE search_days SET signed_size = ?3, is_signed = 1 WHERE customer_id = ?1 AND day = ?2',
  )
  const parts = [partsIn(db, 'search_signs'), partsIn(db, 'search_words')] as const

  function readStored(customerId: string, day: number): StoredDay | undefined {
    return readDay.get(customerId, day) as unknown as StoredDay | undefined
  }

  /** Drops what is more than a day of a size has. */
  function dropParts(customerId: string, day: number, of: number, size: number): void {
    const [old, left] = [countParts(of), countParts(size)]
    const [signs, words] = parts
    signs.drop(customerId, day, left.signs, old.signs)
    words.drop(customerId, day, left.words, old.words)
  }

  function signOne(customerId: string, day: number): void {
    const stored = readStored(customerId, day) as StoredDay
    const made = signDay(textsOf(stored))
    const [signs, words] = parts
    signs.save(customerId, day, made.signs)
    words.save(customerId, day, made.words)
    dropParts(customerId, day, stored.signed_size, sizeOf(stored))
    noteSigned.run(customerId, day, sizeOf(stored))
  }

  return {
    deleteAll(customerId: string): void {
      deleteDays.run(customerId)
      for (const { deleteAll } of parts) deleteAll(customerId)
    },
    /** Puts a day as it is now in the place of what was kept of it. Where texts stay, so do signs: most changes are of a state. */
    renew(customerId: string, day: number, rows: readonly SearchRow[]): void {
      const old = readStored(customerId, day)
      if (rows.length === 0) {
        deleteDay.run(customerId, day)
        dropParts(customerId, day, old?.signed_size ?? 0, 0)
        return
      }
      const made = makeDay(rows)
      const { states, marks, parties, texts } = made
      if (old !== undefined && hasSameTexts(old, made)) {
        changeStates.run(customerId, day, states, marks)
        return
      }
      const isSigned = Math.max(rows.length, old?.signed_size ?? 0) < leastSigned ? 1 : 0
      const save = old === undefined ? insertDay : changeTexts
      save.run(customerId, day, states, marks, parties, texts, isSigned)
    },
    /** Signs days, if there are too many without signs. To be called when all that changed are renewed. */
    sign(customerId: string, changed: ReadonlySet<number>): void {
      const unsigned = findUnsigned.all(customerId).map(({ day }) => Number(day))
      for (const day of chooseToSign(unsigned, changed)) signOne(customerId, day)
    },
  }
}

/** The parts of days in a table. */
function partsIn(db: DatabaseSync, table: string) {
  const savePart = db.prepare(`
    INSERT INTO ${table} (customer_id, part, day, bits) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET bits = excluded.bits WHERE bits <> excluded.bits`)
  const dropPart = db.prepare(`DELETE FROM ${table} WHERE customer_id = ?1 AND part = ?2 AND day = ?3`)
  const dropAll = db.prepare(`DELETE FROM ${table} WHERE customer_id = ?1`)
  return {
    save(customerId: string, day: number, parts: readonly Uint8Array[]): void {
      for (const [part, bits] of parts.entries()) savePart.run(customerId, part, day, bits)
    },
    drop(customerId: string, day: number, from: number, end: number): void {
      for (let part = from; part < end; part++) dropPart.run(customerId, part, day)
    },
    deleteAll: (customerId: string) => dropAll.run(customerId),
  }
}
