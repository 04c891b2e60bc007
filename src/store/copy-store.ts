/** Copies everything from one store to another, of any engine. The target is checked first. Both stores are compared at the end. */
import { createHash } from 'node:crypto'
import { pruneAtOnce } from './change-store.ts'
import { type Content, formatCount, type Kind, type KindName, kindNames, kinds } from './contents.ts'
import { type OperatorStore, StoreError, type WriteStore, type WriteTransaction } from './store.ts'

const batchSize = 500

export type Digest = Awaited<ReturnType<typeof digestStore>>

export type OnItems = (kind: KindName, done: number) => void

/** Throws when the target holds items that the source never had. An empty store and an earlier copy are accepted. */
export async function checkTarget(from: OperatorStore, to: WriteStore, onProgress: OnItems): Promise<void> {
  const foreign: string[] = []
  for (const name of kindNames) {
    let extra = 0
    for await (const [wanted, present] of pairItems(from, to, name, onProgress))
      if (wanted === null && present !== null && !(await mayGo(from, name, present))) extra++
    if (extra > 0) foreign.push(formatCount(name, extra))
  }
  if (foreign.length > 0)
    throw new StoreError(
      `Nothing was copied: the target holds ${foreign.join(' and ')} that the source does not. Copy into an empty store.`,
    )
}

/** Tells whether an item that only the target holds may have been deleted in the source. Otherwise the item came from another source. */
async function mayGo(from: OperatorStore, name: KindName, [, id]: Content): Promise<boolean> {
  if (name === 'invoices') return (await from.findTombstone(String(id))) !== null
  return 'mayGo' in kinds[name]
}

/**
 * Writes items that are missing or differ, and removes items that the source no longer has. An interrupted copy can therefore be run again.
 */
export async function copyStore(from: OperatorStore, to: WriteStore, onProgress: OnItems) {
  const result = { written: 0, alike: 0, removed: 0 }
  for (const name of kindNames) {
    const write = inBatches(to, (tx, batch) => tx.writeContents(name, batch))
    const remove = inBatches(to, (tx, batch) => tx.removeContents(name, batch))
    for await (const [wanted, present] of pairItems(from, to, name, onProgress)) {
      if (wanted !== null && present !== null && isAlike(name, wanted, present)) result.alike++
      else if (wanted !== null) {
        result.written++
        await write.add(wanted)
      } else if (present !== null) {
        result.removed++
        await remove.add(present)
      }
    }
    await remove.flush()
    await write.flush()
  }
  // The target's feed begins after the copy. Cursors of the source are not valid in the target.
  while ((await to.transaction(tx => tx.pruneChanges(Infinity, pruneAtOnce))) > 0);
  await to.renewLife()
  return result
}

function inBatches(store: WriteStore, work: (tx: WriteTransaction, batch: Content[]) => Promise<void>) {
  let batch: Content[] = []
  async function flush(): Promise<void> {
    if (batch.length === 0) return
    const full = batch
    batch = []
    await store.transaction(tx => work(tx, full))
  }
  return {
    flush,
    async add(content: Content): Promise<void> {
      if (batch.push(content) === batchSize) await flush()
    },
  }
}

/** Returns the number of items of each kind, and a SHA-256 over all items in the order of their kinds and keys. */
export async function digestStore(store: OperatorStore, onProgress: OnItems) {
  const hash = createHash('sha256')
  const counts = Object.fromEntries(kindNames.map(name => [name, 0])) as Record<KindName, number>
  for (const name of kindNames) {
    hash.update(name)
    for await (const content of readAll(store, name)) {
      hash.update(JSON.stringify(compared(name, content)))
      if (++counts[name] % batchSize === 0) onProgress(name, counts[name])
    }
  }
  return { counts, sha256: hash.digest('hex') }
}

/**
 * Returns the values that a comparison covers. A revocation may exist in the target alone, because a copy never undoes it. The target's
 * last stamp may be higher.
 */
function compared(name: KindName, content: Content): Content {
  if (name === 'stamps') return []
  const revokedAt = revocationOf(name)
  return revokedAt === -1 ? content : content.toSpliced(revokedAt, 1)
}

/** Returns the index of the column `revoked_at`. Returns -1 for items that cannot be revoked. */
function revocationOf(name: KindName): number {
  return (kinds[name].columns as readonly string[]).indexOf('revoked_at')
}

function isAlike(name: KindName, wanted: Content, present: Content): boolean {
  const revokedAt = revocationOf(name)
  if (revokedAt !== -1 && present[revokedAt] !== wanted[revokedAt]) return wanted[revokedAt] === null
  // The target keeps its own last stamp when that is higher.
  if (name === 'stamps') return Number(present[0]) >= Number(wanted[0])
  return wanted.every((value, i) => value === present[i])
}

async function* readAll(store: OperatorStore, name: KindName): AsyncGenerator<Content> {
  let last: Content | null = null
  for (;;) {
    const contents: Content[] = await store.readContents(name, last, batchSize)
    yield* contents
    if (contents.length < batchSize) return
    last = contents.at(-1) ?? null
  }
}

/**
 * Yields the items of both stores in pairs with equal keys. Null stands for an item that one store lacks. Items that were not yielded yet
 * must not be changed meanwhile.
 */
async function* pairItems(
  from: OperatorStore,
  to: WriteStore,
  name: KindName,
  onProgress: OnItems,
): AsyncGenerator<[Content | null, Content | null]> {
  const [left, right] = [readAll(from, name), readAll(to, name)]
  let [a, b] = [await next(left), await next(right)]
  for (let done = 1; a !== null || b !== null; done++) {
    const order: number = a === null ? 1 : b === null ? -1 : compareKeys(kinds[name], a, b)
    yield [order <= 0 ? a : null, order >= 0 ? b : null]
    if (order <= 0) a = await next(left)
    if (order >= 0) b = await next(right)
    if (done % batchSize === 0) onProgress(name, done)
  }
}

async function next(contents: AsyncGenerator<Content>): Promise<Content | null> {
  const { value, done } = await contents.next()
  return done ? null : value
}

/** Compares two keys. Numbers are compared as numbers, texts by their bytes. */
function compareKeys({ keyLength }: Kind, a: Content, b: Content): number {
  for (let i = 0; i < keyLength; i++) {
    const [left, right] = [a[i], b[i]]
    if (left === right) continue
    if (typeof left === 'number' && typeof right === 'number') return left - right
    return Buffer.compare(Buffer.from(String(left)), Buffer.from(String(right)))
  }
  return 0
}
