/** Some invoices from all over a store, found by a few looks into its index however large it is. */
import type { InvoiceKey } from '../invoice.ts'

/** The first keys after a given one, in their order. */
export type ReadKeys = (after: InvoiceKey | null, limit: number) => Promise<InvoiceKey[]>

/** Comes after whatever an id may hold. */
const beyond = '~'
/** Ids are not longer, and no two customers share more. */
const deepest = 40

/**
 * Up to `count` keys, the same ones every time. Customers are told apart letter by letter until there are enough
 * beginnings; the first invoice of each is taken, then the next of each in turn.
 */
export async function pickSample(readKeys: ReadKeys, count: number): Promise<InvoiceKey[]> {
  const picked = new Map<string, InvoiceKey>()
  let heads = await findHeads(readKeys, count)
  while (heads.length > 0 && picked.size < count) {
    for (const key of spread(heads, count - picked.size)) picked.set(`${key.customer_id} ${key.id}`, key)
    const next: InvoiceKey[] = []
    for (const head of heads) {
      const [key] = await readKeys(head, 1)
      if (key !== undefined && !picked.has(`${key.customer_id} ${key.id}`)) next.push(key)
    }
    heads = next
  }
  return [...picked.values()]
}

/** The first invoice of each of the shortest beginnings of which there are enough. */
async function findHeads(readKeys: ReadKeys, count: number): Promise<InvoiceKey[]> {
  let heads: InvoiceKey[] = []
  for (let length = 1; length <= deepest && heads.length < count; length++) {
    const found = await headsOfLength(readKeys, length, count)
    if (found.length > heads.length || length === 1) heads = found
    // Every customer has a beginning of its own already.
    if (found.every(({ customer_id }) => customer_id.length < length)) break
  }
  return heads
}

/** One for each beginning of this length; of very many, those that come first are enough to go by. */
async function headsOfLength(readKeys: ReadKeys, length: number, count: number): Promise<InvoiceKey[]> {
  const heads: InvoiceKey[] = []
  let after: InvoiceKey | null = null
  while (heads.length < Math.max(64 * 2, count)) {
    const [key]: InvoiceKey[] = await readKeys(after, 1)
    if (key === undefined) break
    heads.push(key)
    after = { customer_id: key.customer_id.slice(0, length) + beyond, id: '' }
  }
  return heads
}

/** `count` of them, evenly from the first to the last. */
function spread<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items]
  return Array.from({ length: count }, (_, i) => items[Math.floor((i * items.length) / count)] as T)
}
