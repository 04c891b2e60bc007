/** A random generator with a seed. All invented data of the sandbox comes from it. */

export type Random = () => number

/** The Mulberry32 algorithm, which is small, fast, and gives the same numbers on every machine. */
export function createRandom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Returns a whole number from `low` to `high`, both inclusive. */
export function integer(random: Random, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1))
}

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

export function letters(random: Random, length: number): string {
  const codes: number[] = []
  while (codes.length < length) {
    // One random number gives five letters.
    let drawn = Math.floor(random() * alphabet.length ** 5)
    for (let count = 0; count < 5; count++) {
      if (codes.length < length) codes.push(alphabet.charCodeAt(drawn % alphabet.length))
      drawn = Math.floor(drawn / alphabet.length)
    }
  }
  return String.fromCharCode(...codes)
}

/** Joins texts into a flat string, because JSON.stringify takes twice as long for concatenated strings. */
export function inOnePiece(...texts: string[]): string {
  return texts.join('')
}

/** Returns a shuffled copy by the Fisher-Yates algorithm. Every order is equally likely. */
export function shuffle<T>(random: Random, list: readonly T[]): T[] {
  const shuffled = [...list]
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const kept = shuffled[last] as T
    shuffled[last] = shuffled[other] as T
    shuffled[other] = kept
  }
  return shuffled
}
