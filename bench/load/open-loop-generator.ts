/**
 * A process that sends requests at a given rate, whether or not answers come: as many clients do that know nothing of each
 * other. Reads what to ask from standard input, prints what came back.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '../statistics.ts'
import type { OpenLoopOptions, OpenLoopResult } from './open-loop.ts'

/** What is not answered after this long, in milliseconds, when the last request was sent, counts as failed. */
const patience = 5_000

interface Connection {
  socket: Socket
  /** When the request under way was due; null when none is. */
  due: number | null
  received: string
}

const options = (await json(process.stdin)) as OpenLoopOptions
const { hostname, port } = new URL(options.address)
const texts = options.requests.map(({ path, headers }) => {
  const fields = Object.entries({ host: hostname, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${fields.join('')}\r\n`)
})

const took = new Map<number, number[]>()
const idle: Connection[] = []
const open = new Set<Connection>()
let [unsent, failed, withoutRetryAfter, underWay] = [0, 0, 0, 0]
let countedFrom = 0

function openConnection(): Connection {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const connection: Connection = { socket, due: null, received: '' }
  open.add(connection)
  socket.setEncoding('latin1')
  socket.on('data', chunk => receive(connection, chunk as unknown as string))
  socket.on('error', () => {})
  socket.on('close', () => {
    open.delete(connection)
    const place = idle.indexOf(connection)
    if (place !== -1) idle.splice(place, 1)
    if (connection.due !== null) {
      failed++
      underWay--
    }
  })
  return connection
}

/** Every answer of the service says its length. */
function receive(connection: Connection, chunk: string): void {
  connection.received += chunk
  const { received, due } = connection
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1 || due === null) return
  const head = received.slice(0, headEnd).toLowerCase()
  const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)
  if (received.length < headEnd + 4 + length) return
  const status = Number(head.slice(9, 12))
  if (due >= countedFrom) count(status, head, due)
  connection.received = ''
  connection.due = null
  underWay--
  if (head.includes('\r\nconnection: close')) connection.socket.end()
  else idle.push(connection)
}

function count(status: number, head: string, due: number): void {
  if (status === 503 && !head.includes('\r\nretry-after: ')) withoutRetryAfter++
  const times = took.get(status)
  if (times === undefined) took.set(status, [performance.now() - due])
  else times.push(performance.now() - due)
}

function send(due: number, turn: number): void {
  const connection = idle.pop() ?? (open.size < options.maxConnections ? openConnection() : undefined)
  if (connection === undefined) {
    if (due >= countedFrom) unsent++
    return
  }
  connection.due = due
  underWay++
  connection.socket.write(texts[turn % texts.length] as Buffer)
}

for (let n = 0; n < (options.openFirst ?? 1); n++) {
  const connection = openConnection()
  await once(connection.socket, 'connect')
  idle.push(connection)
}
const cpuBefore = process.cpuUsage()
const { leadSeconds = 0 } = options
const begun = performance.now()
countedFrom = begun + leadSeconds * 1_000
const interval = 1_000 / options.ratePerSecond
const toSend = Math.round(options.ratePerSecond * (leadSeconds + options.seconds))
for (let sent = 0; sent < toSend; ) {
  const now = performance.now()
  for (; sent < toSend && begun + sent * interval <= now; sent++) send(begun + sent * interval, sent)
  await sleep(1)
}
const ended = performance.now()
while (underWay > 0 && performance.now() - ended < patience) await sleep(5)
failed += underWay
const { user, system } = process.cpuUsage(cpuBefore)
const result: OpenLoopResult = {
  seconds: (ended - countedFrom) / 1000,
  unsent,
  failed,
  withoutRetryAfter,
  byStatus: [...took].map(([status, times]) => ({
    status,
    count: times.length,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    max: times.reduce((most, one) => Math.max(most, one), 0),
  })),
  busy: (user + system) / 1000 / (performance.now() - begun),
}
process.stdout.write(JSON.stringify(result))
process.exit()
