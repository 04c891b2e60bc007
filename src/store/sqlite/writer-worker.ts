/** The thread that writes for the connector: does what it is asked in the order in which it is asked. */
import { parentPort, workerData } from 'node:worker_threads'
import { StoreError, StoreUnavailable } from '../store.ts'
import { openSqliteWriter, type SqliteTransaction, type SqliteWriter } from './writer.ts'
import type { Answer, Failure, Question, WriterData } from './writer-thread.ts'

/** A transaction that is under way. */
interface Open {
  tx: SqliteTransaction
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
  transactions.set(id, { tx, commit: resolve, rollBack: reject, ended })
  return { of: id, names: Object.keys(tx) }
}

function transactionOf(id: number): Open {
  const found = transactions.get(id)
  if (found === undefined) throw new Error('This transaction is over.')
  return found
}

async function end(how: 'commit' | 'rollback', id: number): Promise<void> {
  const { commit, rollBack, ended } = transactionOf(id)
  transactions.delete(id)
  if (how === 'commit') commit()
  else rollBack(new Error('rolled back'))
  await ended
}

async function answer(question: Question): Promise<unknown> {
  const store = await open()
  if ('open' in question) return Object.keys(store)
  if ('begin' in question) return begin(store, question.id)
  if ('end' in question) return end(question.end, question.of)
  const methods = question.of === undefined ? store : transactionOf(question.of).tx
  return (methods as unknown as Methods)[question.call]?.(...question.args)
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
