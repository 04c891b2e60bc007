/** Several processes that serve one address: the first one starts and watches the others, and serves nothing itself. */
import cluster, { type Worker } from 'node:cluster'
import { addAbortListener, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Peer } from '../../metrics/gather.ts'
import { type Meet, meetingPoints } from '../../server/close-connections.ts'
import type { AdminChannel } from './admin-channel.ts'
import type { PreparedApi, RunningApi } from './start-api.ts'

type Started = Pick<RunningApi, 'address'>

/** Messages to a worker: the end is near, and the end. A second signal would end it at once. */
const leaveMessage = 'leave'
const stopMessage = 'stop'

/** A worker that lives shorter than this counts as crashed at its start; so does one that never listened. */
const soonMs = 5_000
const shortestWaitMs = 100
const longestWaitMs = 10_000

/** A worker goes on without the others after so long. */
const meetingMs = 1_000

/** Longer than a worker takes to stop. */
const patienceMs = 9_500

/**
 * Starts `count` workers and keeps as many running until `delay` resolves; then lets them go on serving for that many
 * milliseconds, and then finish their requests. When the first one cannot start, it has logged the reason, and no other is
 * tried: what stops one stops all.
 *
 * The connections are taken here and handed out in turn. Were each worker to listen for itself (SO_REUSEPORT), the ones
 * waiting for a worker that ends would be lost. `channel` gets the address as soon as the first listens.
 */
export async function runWorkers(
  count: number,
  log: Logger,
  delay: Promise<number>,
  channel: AdminChannel,
): Promise<void> {
  const leaving = new AbortController()
  const ending = new AbortController()
  /** Workers that listened: one that never did has nothing to finish. */
  const listened = new WeakSet<Worker>()
  /** Meeting points at which workers are, as "point worker". */
  const arrived = new Set<string>()
  const left = delay.then(delayMs => {
    leaving.abort()
    sendAll(leaveMessage)
    return delayMs
  })
  const first = fork()
  const listening = once(first, 'message').then(([started]) => started as Started)
  // Null when it ends before it listens.
  const started = await Promise.race([listening, once(first, 'exit').then(() => null), left])
  if (started === null) {
    process.exitCode = first.process.exitCode || 1
    return
  }
  if (typeof started === 'object') {
    channel.serves(started.address)
    log.info({ workers: count, address: started.address }, 'listening')
  }

  const places = [keepRunning(first)]
  while (places.length < count && !leaving.signal.aborted) places.push(keepRunning(fork()))
  const delayMs = await left
  if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
  // Nobody waits for workers that are gone.
  await Promise.race([sleep(delayMs, undefined, { ref: false }), Promise.all(places)])
  ending.abort()
  const codes = await Promise.all(places)
  process.exitCode = codes.every(code => code === 0) ? 0 : 1
  log.info('stopped')

  function fork(): Worker {
    const worker = cluster.fork()
    log.debug({ pid: worker.process.pid }, 'a worker started')
    const peer: Peer = { messages: worker, send: message => tell(worker, message) }
    worker.once('listening', () => {
      listened.add(worker)
      channel.addPeer(peer)
    })
    worker.on('message', message => {
      if (!meetingPoints.includes(message)) return
      arrived.add(`${message} ${worker.id}`)
      if (leaving.signal.aborted) letGo()
      // It stops alone: the others go on listening.
      else peer.send(message)
    })
    worker.once('exit', () => {
      channel.removePeer(peer)
      if (leaving.signal.aborted) letGo()
    })
    return worker
  }

  function letGo(): void {
    const workers = Object.values(cluster.workers ?? {})
    for (const point of meetingPoints)
      if (workers.every(worker => arrived.has(`${point} ${worker?.id}`))) sendAll(point)
  }

  /** Keeps a place taken; resolves at the end with the exit code of the last worker that had it. */
  async function keepRunning(worker: Worker): Promise<number> {
    for (let wait = shortestWaitMs; ; ) {
      const since = performance.now()
      const code = await waitForEnd(worker, ending.signal)
      if (leaving.signal.aborted) return listened.has(worker) ? code : 0
      const hasServed = listened.has(worker) && performance.now() - since > soonMs
      wait = hasServed ? shortestWaitMs : Math.min(wait * 2, longestWaitMs)
      log.error({ pid: worker.process.pid, code, again_in_ms: wait }, 'a worker ended; starting another')
      await sleep(wait, undefined, { signal: leaving.signal }).catch(() => {})
      if (leaving.signal.aborted) return 0
      worker = fork()
    }
  }
}

/** A worker that is ending by itself may be gone before the message arrives. */
function tell(worker: Worker | undefined, message: string | object): void {
  if (worker?.isConnected()) worker.send(message, () => {})
}

function sendAll(message: string): void {
  for (const worker of Object.values(cluster.workers ?? {})) tell(worker, message)
}

/** Resolves with the exit code; a worker that was killed has none, and counts as failed. */
async function waitForEnd(worker: Worker, ending: AbortSignal): Promise<number> {
  let giveUp: NodeJS.Timeout | undefined
  using _ = addAbortListener(ending, () => {
    tell(worker, stopMessage)
    giveUp = setTimeout(() => worker.process.kill('SIGKILL'), patienceMs)
  })
  const [code] = await once(worker, 'exit')
  clearTimeout(giveUp)
  return code ?? 1
}

/** Serves until the message to stop, or for the milliseconds of `delay`; does not listen when one came before. */
export async function serveAsWorker(
  prepare: () => Promise<PreparedApi>,
  delay: Promise<number>,
  isMeasured: boolean,
): Promise<void> {
  const heard = new AbortController()
  const leave = hear(leaveMessage)
  const stop = hear(stopMessage)
  for (const end of [leave, stop, delay]) void end.then(() => heard.abort())
  try {
    const prepared = await prepare()
    if (heard.signal.aborted) return await prepared.discard()
    const api = await prepared.listen()
    process.send?.({ address: api.address } satisfies Started)
    if (isMeasured) {
      const { answerReadings } = await import('../../metrics/gather.ts')
      answerReadings({ serves: api }, process, answer => process.send?.(answer))
    }
    void leave.then(() => api.leave())
    const alone = delay.then(async delayMs => {
      // Only the first process knows whether all of them go.
      api.leave(true)
      await sleep(delayMs, undefined, { ref: false })
    })
    const meet: Meet = async point => {
      const met = hear(point)
      process.send?.(point)
      await Promise.race([met, sleep(meetingMs)])
    }
    await Promise.race([stop, alone])
    await api.stop(meet)
  } finally {
    // Only the connection to the first process is left to keep this one alive.
    cluster.worker?.disconnect()
  }
}

function hear(expected: string): Promise<void> {
  return new Promise(resolve => {
    process.on('message', message => message === expected && resolve())
  })
}
