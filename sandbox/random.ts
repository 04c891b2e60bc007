/** A seeded random generator: everything that the sandbox invents is drawn from it. */

export type Random = () => number

/** Mulberry32: small, fast, and the same everywhere. */
export function createRandom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A whole number, both ends included. */
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
    // One draw makes five letters.
    let drawn = Math.floor(random() * alphabet.length ** 5)
    for (let count = 0; count < 5; count++) {
      if (codes.length < length) codes.push(alphabet.charCodeAt(drawn % alphabet.length))
      drawn = Math.floor(drawn / alphabet.length)
    }
  }
  return String.fromCharCode(...codes)
}

/** A flat string: JSON.stringify takes half the time of concatenated ones. */
export function inOnePiece(...texts: string[]): string {
  return texts.join('')
}

/** Fisher and Yates: a new list, every order equally likely. */
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
