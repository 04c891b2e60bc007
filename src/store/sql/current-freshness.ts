/** The moment until which the records follow their sources, as a statement over the streams; null before everything was read once. */
import { type Freshness, freshness } from '../../sources/stream-names.ts'

const follows = isOneThat('follows')
const isAlone = isOneThat('alone')

export const currentFreshness = `
  SELECT CASE WHEN count(*) = count(succeeded_at)
    THEN coalesce(min(CASE WHEN ${follows} THEN succeeded_at END), min(succeeded_at))
    END AS synced_at
  FROM fatura.streams
  WHERE ${follows} OR ${isOneThat('once')}
    OR (${isAlone} AND NOT EXISTS (SELECT 1 FROM fatura.streams WHERE NOT ${isAlone}))`

function isOneThat(wanted: Freshness): string {
  const names = Object.entries(freshness).filter(([, each]) => each === wanted)
  return `(${names.map(([name]) => `name = '${name}' OR name LIKE '%:${name}'`).join(' OR ')})`
}
