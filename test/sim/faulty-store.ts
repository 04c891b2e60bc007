/** A store whose calls are points at which others go on, and at which it may fail. */
import {
  type ConnectorStores,
  StoreUnavailable,
  type WriteStore,
  type WriteTransaction,
} from '../../src/store/store.ts'
import type { Faults } from './sources.ts'
import { type Process, realCalls, type VirtualTime } from './virtual-time.ts'

export interface FaultyOptions {
  time: VirtualTime
  faults: Faults
  process: Process
  /** Whether the store's calls leave the program. Then others go on between transactions alone: within one, a lock would be held. */
  isReal: boolean
  /** Called after each commit, before anything else of the process goes on. */
  onCommit(): void | Promise<void>
  /** Called before a document is stored as missed. */
  onMiss(id: number, stamp: number): void
}

export interface FaultyStores extends ConnectorStores {
  /** Whether no call is under way: then the connections below may serve another process. */
  isIdle(): boolean
}

export function addFaults({ store, leases }: ConnectorStores, options: FaultyOptions): FaultyStores {
  const { time, faults, process, isReal, onCommit, onMiss } = options
  const within = isReal ? 0 : 0.1
  let callsUnderWay = 0
  const chance = (share: number) => time.random() < share

  async function point(label: string, waits: number, rate: number): Promise<void> {
    if (faults.storeRate > 0 && chance(waits)) await time.wait(process, label)
    if (chance(rate)) throw new StoreUnavailable(`the store failed at ${label}`)
  }

  async function count<T>(call: () => T | Promise<T>): Promise<T> {
    callsUnderWay++
    try {
      return await (isReal ? realCalls.run(call) : call())
    } finally {
      callsUnderWay--
    }
  }

  /** All methods of a store or a transaction, each with a point before it. */
  function wrap<T extends object>(target: T, waits: number, share: number): T {
    const asked = Object.entries(target)
    const methods = asked.map(([name, method]) => [
      name,
      async (...given: unknown[]) => {
        await point(name, waits, faults.storeRate * share)
        if (name === 'missDocument') onMiss(given[0] as number, given[1] as number)
        return count(() => method(...given))
      },
    ])
    return { ...target, ...Object.fromEntries(methods) }
  }

  const faulty: WriteStore = {
    ...wrap(store, 0.3, 0.3),
    async transaction(work) {
      await point('transaction', 0.5, faults.storeRate)
      const result = await count(() => store.transaction(tx => work(wrap<WriteTransaction>(tx, within, 0.2))))
      if (isReal) await count(onCommit)
      else void onCommit()
      // It is committed, and the answer does not arrive.
      if (chance(faults.storeRate / 2)) throw new StoreUnavailable('the connection broke after the commit')
      return result
    },
  }
  return { store: faulty, leases: wrap(leases, 0.2, 1), isIdle: () => callsUnderWay === 0 }
}
