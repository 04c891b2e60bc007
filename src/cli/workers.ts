/** Several processes that serve one address: the first one starts and watches the others, and serves nothing itself. */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { RunningApi } from './start-api.ts'

/** What a worker says once it listens. */
interface Started {
  address: string
}

/** What a worker is told when everything is to end. A signal would end it at once if it had one already. */
const stopMessage = 'stop'

/** A worker that lives shorter than this, in milliseconds, counts as crashed at its start. */
const soon = 5_000
const shortestWait = 100
const longestWait = 10_000

/** Longer than a worker takes to stop. */
const patience = 9_500

/**
 * Starts `count` workers and keeps as many running until `signal`, then lets all finish their requests. When the first
 * one cannot start, it has said why, and no other is tried: what stops one stops all.
 *
 * The connections are taken here and handed out in turn. Were each worker to listen for itself (SO_REUSEPORT), the ones
 * waiting for a worker that ends would be lost.
 */
export async function runWorkers(count: number, log: Logger, signal: Promise<void>): Promise<void> {
  const ending = new AbortController()
  const ended = signal.then(() => ending.abort())
  const first = fork()
  const started = await Promise.race([listening(first), ended])
  if (started === null) {
    process.exitCode = first.process.exitCode || 1
    return
  }
  if (started !== undefined) log.info({ workers: count, address: started.address }, 'listening')

  const places = [keepRunning(first)]
  while (places.length < count && !ending.signal.aborted) places.push(keepRunning(fork()))
  await ended
  const codes = await Promise.all(places)
  process.exitCode = codes.every(code => code === 0) ? 0 : 1
  log.info('stopped')

  function fork(): Worker {
    const worker = cluster.fork()
    log.debug({ pid: worker.process.pid }, 'a worker started')
    return worker
  }

  /** Keeps a place taken; resolves at the end with the exit code of the last worker that had it. */
  async function keepRunning(worker: Worker): Promise<number> {
    for (let wait = shortestWait; ; ) {
      const since = performance.now()
      const code = await waitForEnd(worker, ending.signal)
      if (ending.signal.aborted) return code
      wait = performance.now() - since > soon ? shortestWait : Math.min(wait * 2, longestWait)
      log.error({ pid: worker.process.pid, code, again_in_ms: wait }, 'a worker ended; starting another')
      await sleep(wait, undefined, { signal: ending.signal }).catch(() => {})
      if (ending.signal.aborted) return 0
      worker = fork()
    }
  }
}

/** Null when the worker ends before it listens. */
async function listening(worker: Worker): Promise<Started | null> {
  const exit = once(worker, 'exit').then(() => null)
  const message = once(worker, 'message').then(([started]) => started as Started)
  return Promise.race([message, exit])
}

/** Resolves with the exit code; a worker that was killed has none, and counts as failed. */
function waitForEnd(worker: Worker, ending: AbortSignal): Promise<number> {
  return new Promise(resolve => {
    let giveUp: NodeJS.Timeout | undefined
    const stop = () => {
      // One that is ending by itself may be gone before it hears.
      if (worker.isConnected()) worker.send(stopMessage, () => {})
      giveUp = setTimeout(() => worker.process.kill('SIGKILL'), patience)
    }
    worker.once('exit', (code: number | null) => {
      clearTimeout(giveUp)
      ending.removeEventListener('abort', stop)
      resolve(code ?? 1)
    })
    if (ending.aborted) stop()
    else ending.addEventListener('abort', stop, { once: true })
  })
}

/** A worker's own part: serves until a signal, or until it is told to stop. */
export async function serveAsWorker(start: () => Promise<RunningApi>, signal: Promise<void>): Promise<void> {
  const told = new Promise<void>(resolve => {
    process.on('message', message => message === stopMessage && resolve())
  })
  try {
    const { address, stop } = await start()
    process.send?.({ address } satisfies Started)
    await Promise.race([signal, told])
    await stop()
  } finally {
    // Only the connection to the first process is left to keep this one alive.
    cluster.worker?.disconnect()
  }
}
