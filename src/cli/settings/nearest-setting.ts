/** Finds the setting that a misspelt name was meant to be. */
import { variableNames } from './settings.ts'

/**
 * Returns the nearest variable whose name differs in at most `share` of its letters. Null when no variable is near, or when `name` is a
 * variable itself.
 */
export function findNearest(name: string, share: number): string | null {
  if (variableNames.includes(name)) return null
  const byDistance = variableNames
    .map(setting => ({ setting, distance: countEdits(name, setting) }))
    .filter(({ setting, distance }) => distance <= share * setting.length)
    .sort((a, b) => a.distance - b.distance)
  return byDistance[0]?.setting ?? null
}

/** Levenshtein distance: the number of letters to add, remove or replace until both texts are equal. */
function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, j) => j)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
