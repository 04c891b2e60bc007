/** About when the first invoice of an account was made. */

const day = 86_400

/** Some thirty years: more than any account has. */
const farthest = 14

/** Stripe lists newest first and counts nothing: asks at once how far back there is anything, by steps that double. */
export async function searchFirst(
  newestBefore: (moment: number) => Promise<number | null>,
): Promise<number | null> {
  const newest = await newestBefore(Math.floor(Date.now() / 1000) + day)
  if (newest === null) return null
  const moments = Array.from({ length: farthest }, (_, step) => newest - day * 2 ** step)
  const found = await Promise.all(moments.map(newestBefore))
  const empty = found.indexOf(null)
  return moments[empty === -1 ? farthest - 1 : empty] ?? null
}
