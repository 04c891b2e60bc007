/** Reads from several nodes that serve the same store, in turn. One that is out of reach is left out for a while. */
import { type ConnectionUse, type ReadStore, StoreUnavailable } from '../store.ts'
import { openPostgresReader } from './reader.ts'

/** How long a node that failed is asked last. */
const restMs = 1_000

interface Node {
  url: string
  store: Promise<ReadStore> | null
  restsUntil: number
}

/** A node that cannot be reached at first is tried again later; all of them must not be. */
export async function openSpreadReader(urls: readonly string[], sharedBy: number): Promise<ReadStore> {
  const nodes: Node[] = urls.map(url => ({ url, store: null, restsUntil: 0 }))
  let turn = 0

  function open(node: Node): Promise<ReadStore> {
    node.store ??= openPostgresReader(node.url, sharedBy).catch(error => {
      node.store = null
      throw error
    })
    return node.store
  }

  async function ask<T>(question: (store: ReadStore) => Promise<T>): Promise<T> {
    const first = turn++ % nodes.length
    const inTurn = [...nodes.slice(first), ...nodes.slice(0, first)]
    const now = performance.now()
    const isResting = ({ restsUntil }: Node) => restsUntil > now
    let failure: unknown
    for (const node of [...inTurn.filter(node => !isResting(node)), ...inTurn.filter(isResting)])
      try {
        return await question(await open(node))
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        node.restsUntil = performance.now() + restMs
        failure = error
      }
    throw failure
  }

  async function close(): Promise<void> {
    for (const { store } of nodes) await (await store?.catch(() => null))?.close()
  }

  /** Of each kind, at all nodes together. */
  async function readConnections(): Promise<ConnectionUse[]> {
    const sums = new Map<string, ConnectionUse>()
    for (const node of nodes)
      for (const use of (await (await node.store?.catch(() => null))?.readConnections()) ?? []) {
        const sum = sums.get(use.kind) ?? { kind: use.kind, open: 0, idle: 0, reads: 0 }
        sum.open += use.open
        sum.idle += use.idle
        sum.reads += use.reads
        sums.set(use.kind, sum)
      }
    return [...sums.values()]
  }

  const opened = await Promise.allSettled(nodes.map(open))
  const failures = opened.flatMap(each => (each.status === 'rejected' ? [each.reason as unknown] : []))
  const fatal = failures.find(failure => !(failure instanceof StoreUnavailable))
  if (fatal !== undefined || failures.length === nodes.length) {
    await close()
    throw fatal ?? failures[0]
  }
  return {
    listInvoices: query => ask(store => store.listInvoices(query)),
    readSnapshot: customerId => ask(store => store.readSnapshot(customerId)),
    readFreshness: () => ask(store => store.readFreshness()),
    findInvoice: (customerId, invoiceId) => ask(store => store.findInvoice(customerId, invoiceId)),
    findToken: id => ask(store => store.findToken(id)),
    findKey: kid => ask(store => store.findKey(kid)),
    coversCustomer: (id, customerId) => ask(store => store.coversCustomer(id, customerId)),
    readConnections,
    ping: () => ask(store => store.ping()),
    close,
  }
}
