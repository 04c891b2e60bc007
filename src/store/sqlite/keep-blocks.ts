/** The blocks that a search looks through: made again where days changed, within the transaction that changes them. */
import type { DatabaseSync } from 'node:sqlite'
import { everyDay } from '../read-model/counting.ts'
import { everyPart, signBlock } from '../read-model/search-signs.ts'
import {
  blockColumns,
  hasSameTexts,
  makeBlock,
  readBlock,
  type SearchBlock,
  type SearchDay,
  textsOf,
} from './search-blocks.ts'

/** A block is cut once each part has this many invoices. Smaller blocks make searches slower, larger ones writes. */
const blockLeast = 512

type StoredBlock = SearchBlock & { first: number }

export function keepBlocks(db: DatabaseSync, least = blockLeast) {
  const findBlock = db.prepare(`
    SELECT first, ${blockColumns} FROM search_blocks
    WHERE customer_id = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1`)
  const deleteBlock = db.prepare('DELETE FROM search_blocks WHERE customer_id = ?1 AND first = ?2')
  const deleteBlocks = db.prepare('DELETE FROM search_blocks WHERE customer_id = ?1')
  const insertBlock = db.prepare(`
    INSERT INTO search_blocks (customer_id, first, ${blockColumns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`)
  const deleteSign = db.prepare(
    `DELETE FROM search_signs WHERE customer_id = ?1 AND part IN (${everyPart.join(', ')}) AND first = ?2`,
  )
  const deleteSigns = db.prepare('DELETE FROM search_signs WHERE customer_id = ?1')
  const deletePart = db.prepare(
    'DELETE FROM search_signs WHERE customer_id = ?1 AND part = ?2 AND first = ?3',
  )
  const savePart = db.prepare(`
    INSERT INTO search_signs (customer_id, part, first, bits) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET bits = excluded.bits WHERE bits <> excluded.bits`)

  /** Signs stay as they are where texts do: most changes are of a state. */
  function saveBlock(customerId: string, first: number, made: readonly SearchDay[], old?: StoredBlock): void {
    const block = makeBlock(made)
    const { days, states, marks, parties, texts } = block
    insertBlock.run(customerId, first, days, states, marks, parties, texts)
    const isOld = old?.first === first
    if (isOld && hasSameTexts(old, block)) return
    const signs = new Map(signBlock(textsOf(block)))
    for (const [part, bits] of signs) savePart.run(customerId, part, first, bits)
    if (isOld) for (const part of everyPart) if (!signs.has(part)) deletePart.run(customerId, part, first)
  }

  return {
    deleteAll(customerId: string): void {
      deleteBlocks.run(customerId)
      deleteSigns.run(customerId)
    },
    /** Puts days as they are read now in the place of what was kept of them. */
    renew(customerId: string, days: Iterable<number>, read: (day: number) => SearchDay): void {
      const changed = [...days].sort((a, b) => a - b)
      for (let latest = changed.at(-1); latest !== undefined; latest = changed.at(-1)) {
        const stored = findBlock.get(customerId, latest) as unknown as StoredBlock | undefined
        const first = stored?.first ?? everyDay.first
        deleteBlock.run(customerId, first)
        const kept = stored === undefined ? [] : readBlock(stored)
        let [whole, part]: [SearchDay[], SearchDay[]] = [[], []]
        let size = 0
        for (const day of mergeDays(kept, changed, first, read)) {
          part.push(day)
          size += day.rows.length
          if (size < least) continue
          const above = whole.at(-1)
          if (above !== undefined) saveBlock(customerId, above.day, whole)
          ;[whole, part, size] = [part, [], 0]
        }
        // The lowest keeps its place, so that every day has a block it belongs to; and what is too little joins it.
        const left = [...whole, ...part]
        if (left.length > 0 || first === everyDay.first) saveBlock(customerId, first, left, stored)
        else deleteSign.run(customerId, first)
      }
    },
  }
}

/** Latest first; takes from `changed` the days that belong to the block, and leaves out those without invoices. */
function* mergeDays(
  kept: readonly SearchDay[],
  changed: number[],
  first: number,
  read: (day: number) => SearchDay,
): Generator<SearchDay> {
  let at = 0
  for (;;) {
    const [old, day = Number.NEGATIVE_INFINITY] = [kept[at], changed.at(-1)]
    if (day < first && old === undefined) return
    if (old !== undefined && old.day >= day) at++
    if (old !== undefined && old.day > day) yield old
    else {
      changed.pop()
      const renewed = read(day)
      if (renewed.rows.length > 0) yield renewed
    }
  }
}
