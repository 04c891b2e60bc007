/** Several processes that serve one address: the first one starts and watches the others, and serves nothing itself. */
import cluster, { type Worker } from 'node:cluster'
import { addAbortListener, once } from 'node:events'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Peer } from '../../metrics/gather.ts'
import type { AdminChannel } from './admin-channel.ts'
import type { PreparedApi, RunningApi } from './start-api.ts'

type Started = Pick<RunningApi, 'address'>

/** Messages to a worker: the end is near, and the end. A second signal would end it at once. */
const leaveMessage = 'leave'
const stopMessage = 'stop'

/** A worker's message that nobody connects any more, with how many it has taken since its end began. */
interface Quiet {
  taken: number
}

/** The answers to it: to look once more, and that it gets no more connections. */
const lookMessage = 'look'
const closedMessage = 'closed'

/** A worker that lives shorter than this counts as crashed at its start; so does one that never listened. */
const soonMs = 5_000
const shortestWaitMs = 100
const longestWaitMs = 10_000

/** The port is closed so long after the first worker is quiet, whatever the others do. */
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
  /** Connections that workers took, of those to which nobody connects any more. */
  const quiet = new Map<Worker, number>()
  let takenBefore: number | undefined
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
    worker.on('message', (message: Partial<Quiet>) => {
      if (message.taken === undefined) return
      // One that stops alone: the others go on.
      if (!leaving.signal.aborted) return void closePort(worker)
      if (quiet.size === 0) setTimeout(closePort, meetingMs).unref()
      quiet.set(worker, message.taken)
      closeWhenQuiet()
    })
    worker.once('exit', () => {
      channel.removePeer(peer)
      closeWhenQuiet()
    })
    return worker
  }

  function closeWhenQuiet(): void {
    if (quiet.size === 0 || !running().every(worker => quiet.has(worker))) return
    const taken = quiet.values().reduce((sum, count) => sum + count, 0)
    // What has connected waits here, and is handed out one by one: nothing waits when none came between two looks.
    if (taken === takenBefore) return void closePort()
    takenBefore = taken
    quiet.clear()
    sendAll(lookMessage)
  }

  /** Gives one or all of them no more connections; the port closes with the last. */
  async function closePort(only?: Worker): Promise<void> {
    // A turn of the event loop takes one that has connected: the last one finds none.
    for (let turn = 0; turn < 3; turn++) await immediate()
    for (const worker of only ? [only] : running().filter(worker => listened.has(worker))) {
      worker.disconnect()
      tell(worker, closedMessage)
    }
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

/** All that get connections, and those that are about to. */
const running = () => Object.values(cluster.workers ?? {}) as Worker[]

function sendAll(message: string): void {
  for (const worker of running()) tell(worker, message)
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
  // The first process lets go of a worker without connections before its message is read.
  const closed = Promise.race([hear(closedMessage), once(process, 'disconnect')]).then(() => true)
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
    await Promise.race([stop, alone])
    await api.stop(taken => {
      if (process.connected) process.send?.({ taken } satisfies Quiet)
      return Promise.race([closed, hear(lookMessage).then(() => false)])
    })
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
