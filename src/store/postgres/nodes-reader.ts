/** Reads from several nodes in turn. One out of reach is left out for a while; one with older content for as long as it is older. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConnectionUse, type ReadStore, StoreUnavailable } from '../store.ts'
import { openPostgresReader, type PostgresReader } from './reader.ts'
import { hostsOf } from './split-hosts.ts'

/** How long a node that failed is asked last. */
const restMs = 1_000
/** How often it is looked how new a node's content is, and how long a question waits for that. */
const [lookEveryMs, lookPatienceMs] = [1_000, 250]
/** The connector writes every 5 s: what is further behind than that, and a little more, does not follow. */
const behindAtMostMs = 10_000

/** How many customers' nodes are remembered, and for how long in milliseconds: a shard may move. */
const [customersAtMost, keepMs] = [50_000, 60_000]

const makeNode = (url: string) => ({
  url,
  store: null as Promise<PostgresReader> | null,
  restsUntil: 0,
  lookedAt: 0,
  looking: null as Promise<void> | null,
  /** Whether the last look failed. It is not asked until one succeeds: it may be another server when it is back. */
  isDown: true,
  writtenAt: 0,
  isLeftOut: false,
  group: null as number | null,
})
type Node = ReturnType<typeof makeNode>

/** Called when a node is left out because its content is old, and with null when it is asked again. */
export type OnLeftOut = (at: string, behindMs: number | null) => void

/** A node that cannot be reached at first is tried again later; all of them must not be. */
export async function openNodesReader(
  urls: readonly string[],
  onLeftOut: OnLeftOut = () => {},
): Promise<ReadStore> {
  const nodes = urls.map(makeNode)
  let turn = 0
  const findGroup = rememberGroups(customerId => ask(store => store.findGroup(customerId)))

  function open(node: Node): Promise<PostgresReader> {
    node.store ??= openPostgresReader(node.url).catch(error => {
      node.store = null
      throw error
    })
    return node.store
  }

  function look(node: Node): Promise<void> {
    node.lookedAt = performance.now()
    node.looking ??= lookNow(node)
    return node.looking
  }

  async function lookNow(node: Node): Promise<void> {
    try {
      const store = await open(node)
      node.group = store.group
      node.writtenAt = await store.readWrittenAt()
      node.isDown = false
    } catch (error) {
      node.isDown = true
      throw error
    } finally {
      node.looking = null
      compare()
    }
  }

  const behindOf = ({ writtenAt, isDown }: Node) =>
    isDown ? 0 : Math.max(...nodes.map(each => (each.isDown ? 0 : each.writtenAt))) - writtenAt

  function compare(): void {
    for (const node of nodes) {
      const behindMs = behindOf(node)
      const isLeftOut = behindMs > behindAtMostMs
      if (isLeftOut !== node.isLeftOut) onLeftOut(hostsOf(node.url), isLeftOut ? behindMs : null)
      node.isLeftOut = isLeftOut
    }
  }

  /** Nobody is asked by what was known longer ago; but one that does not answer keeps nobody waiting for long. */
  async function lookAtDue(): Promise<void> {
    const looks = nodes.flatMap(node => {
      const isDue = performance.now() - node.lookedAt > lookEveryMs
      const looking = isDue ? look(node) : node.looking
      looking?.catch(() => {})
      return looking === null || node.isDown ? [] : [looking]
    })
    if (looks.length > 0)
      await Promise.race([Promise.allSettled(looks), sleep(lookPatienceMs, undefined, { ref: false })])
  }

  /** On Citus, the node that holds the customer is asked first, once it is known. */
  async function ask<T>(question: (store: PostgresReader) => Promise<T>, customerId?: string): Promise<T> {
    const first = turn++ % nodes.length
    const inTurn = [...nodes.slice(first), ...nodes.slice(0, first)]
    await lookAtDue()
    const now = performance.now()
    const isCitus = nodes.some(({ group }) => group !== null)
    const theirs = isCitus && customerId !== undefined ? findGroup(customerId) : undefined
    const rankOf = ({ isDown, restsUntil, group }: Node) =>
      isDown || restsUntil > now ? 2 : group === theirs ? 0 : 1
    let failure: unknown = new StoreUnavailable('No database server with the newest content answers.')
    for (const node of inTurn.toSorted((a, b) => rankOf(a) - rankOf(b)))
      try {
        if (node.isDown && !node.isLeftOut) await look(node)
        if (node.isLeftOut) continue
        return await question(await open(node))
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        node.restsUntil = performance.now() + restMs
        node.lookedAt = 0
        failure = error
      }
    throw failure
  }

  async function close(): Promise<void> {
    for (const { store } of nodes) await (await store?.catch(() => null))?.close()
  }

  async function readConnections(): Promise<ConnectionUse[]> {
    const sums = new Map<string, ConnectionUse>()
    for (const node of nodes)
      for (const use of (await (await node.store?.catch(() => null))?.readConnections()) ?? []) {
        const sum = sums.get(use.kind) ?? { kind: use.kind, open: 0, idle: 0, reads: 0 }
        for (const name of ['open', 'idle', 'reads'] as const) sum[name] += use[name]
        sums.set(use.kind, sum)
      }
    return [...sums.values()]
  }

  const opened = await Promise.allSettled(nodes.map(look))
  const failures = opened.flatMap(each => (each.status === 'rejected' ? [each.reason as unknown] : []))
  const fatal = failures.find(failure => !(failure instanceof StoreUnavailable))
  if (fatal !== undefined || failures.length === nodes.length) {
    await close()
    throw fatal ?? failures[0]
  }
  return {
    listInvoices: query => ask(store => store.listInvoices(query), query.customer_id),
    readSums: customerId => ask(store => store.readSums(customerId), customerId),
    readOpen: (customerId, day) => ask(store => store.readOpen(customerId, day), customerId),
    readSnapshot: customerId => ask(store => store.readSnapshot(customerId), customerId),
    readFreshness: () => ask(store => store.readFreshness()),
    findInvoice: (customerId, invoiceId) =>
      ask(store => store.findInvoice(customerId, invoiceId), customerId),
    findToken: id => ask(store => store.findToken(id)),
    findKey: kid => ask(store => store.findKey(kid)),
    coversCustomer: (id, customerId) => ask(store => store.coversCustomer(id, customerId)),
    readChanges: (customerId, ...place) =>
      ask(store => store.readChanges(customerId, ...place), customerId ?? undefined),
    readConnections,
    readNodes: async () =>
      nodes.map(node => ({
        at: hostsOf(node.url),
        behindMs: behindOf(node),
        isAsked: !node.isDown && !node.isLeftOut,
      })),
    ping: () => ask(store => store.ping()),
    close,
  }
}

/** On Citus, the group of a customer's node, looked up for the next time when unknown. A wrong one costs a way between nodes. */
function rememberGroups(lookUp: (customerId: string) => Promise<number | undefined>) {
  const groups = new Map<string, number>()
  let since = performance.now()
  return (customerId: string): number | undefined => {
    if (groups.size >= customersAtMost || performance.now() - since > keepMs) {
      groups.clear()
      since = performance.now()
    }
    const group = groups.get(customerId)
    if (group === undefined)
      lookUp(customerId).then(
        found => found !== undefined && groups.set(customerId, found),
        () => {},
      )
    return group
  }
}
