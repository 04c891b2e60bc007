/** The thread that writes for the connector: does what it is asked in the order in which it is asked. */
import { parentPort, workerData } from 'node:worker_threads'
import { StoreError, StoreUnavailable } from '../store.ts'
import { createTurns, type InTurn } from './operator.ts'
import { openSqliteWriter, type SqliteTransaction, type SqliteWriter } from './writer.ts'
import type { Answer, Failure, Question, WriterData } from './writer-thread.ts'

/** A transaction that is under way. */
interface Open {
  tx: SqliteTransaction
  /** Its calls come one after the other. */
  inTurn: InTurn
  /** Whether a call failed. SQLite may have rolled back by itself then: what followed would be stored without the rest. */
  isBroken: boolean
  commit(): void
  rollBack(reason: Error): void
  ended: Promise<void>
}

type Methods = Record<string, (...args: unknown[]) => unknown>

const { path, patienceMs } = workerData as WriterData
const transactions = new Map<number, Open>()
let opening: Promise<SqliteWriter> | null = null

function open(): Promise<SqliteWriter> {
  opening ??= openSqliteWriter(path, {
    ...(patienceMs !== undefined && { patienceMs }),
    onWait: waitsFor => send({ waitsFor }),
  })
  return opening
}

/** Resolves once it has begun. */
async function begin(store: SqliteWriter, id: number): Promise<{ of: number; names: string[] }> {
  const begun = Promise.withResolvers<SqliteTransaction>()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const ended = store.transaction(tx => {
    begun.resolve(tx)
    return promise
  })
  ended.catch(begun.reject)
  const tx = await begun.promise
  const inTurn = createTurns()
  transactions.set(id, { tx, inTurn, isBroken: false, commit: resolve, rollBack: reject, ended })
  return { of: id, names: Object.keys(tx) }
}

function transactionOf(id: number): Open {
  const found = transactions.get(id)
  if (found === undefined) throw new Error('This transaction is over.')
  return found
}

async function end(how: 'commit' | 'rollback', id: number): Promise<void> {
  const { inTurn, commit, rollBack, ended } = transactionOf(id)
  transactions.delete(id)
  await inTurn(() => {
    if (how === 'commit') commit()
    else rollBack(new Error('rolled back'))
    return ended
  })
}

async function answer(question: Question): Promise<unknown> {
  const store = await open()
  if ('open' in question) return Object.keys(store)
  if ('begin' in question) return begin(store, question.id)
  if ('end' in question) return end(question.end, question.of)
  const { call, args, of } = question
  return of === undefined
    ? (store as unknown as Methods)[call]?.(...args)
    : callWithin(transactionOf(of), call, args)
}

function callWithin(open: Open, call: string, args: unknown[]): Promise<unknown> {
  return open.inTurn(async () => {
    if (open.isBroken) throw new Error('A call before this one failed: nothing more is written.')
    try {
      return await (open.tx as unknown as Methods)[call]?.(...args)
    } catch (error) {
      open.isBroken = true
      throw error
    }
  })
}

function send(answer: Answer): void {
  parentPort?.postMessage(answer)
}

function tellFailure(error: unknown): Failure {
  const { message, stack } = error as Error
  const kind =
    error instanceof StoreUnavailable ? 'unavailable' : error instanceof StoreError ? 'store' : 'fault'
  return { kind, message, stack }
}

parentPort?.on('message', async (question: Question) => {
  const { id } = question
  try {
    send({ id, value: await answer(question) })
  } catch (error) {
    send({ id, failure: tellFailure(error) })
  }
})
