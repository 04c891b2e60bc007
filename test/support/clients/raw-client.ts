/** A client that keeps no rules: bytes as they are, and answers read strictly. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Answer } from '../worlds/service.ts'

/** A connection whose own side stays open until it is destroyed, whatever the server does. */
export interface RawClient {
  socket: Socket
  /** Everything that came back so far. */
  readonly raw: Buffer
  /** Resolves when the server closed its side, or broke the connection off. */
  ended: Promise<void>
}

export function openRaw(port: number, bytes: string | Buffer = ''): RawClient {
  const chunks: Buffer[] = []
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const ended = new Promise<void>(resolve => {
    socket.on('end', resolve).on('close', () => resolve())
  })
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  if (bytes.length > 0) socket.write(bytes)
  return {
    socket,
    ended,
    get raw() {
      return Buffer.concat(chunks)
    },
  }
}

/** What the requests were: answers to HEAD have no body, whatever their headers say. */
type Asked = 'HEAD' | 'others'

/** Sends the bytes and resolves with all the answers, once the server closed its side. */
export async function sendRaw(
  port: number,
  bytes: string | Buffer,
  asked: Asked = 'others',
): Promise<Answer[]> {
  const client = openRaw(port, bytes)
  await client.ended
  client.socket.destroy()
  return parseAnswers(client.raw, asked)
}

/** Whole answers, one after the other, and nothing else. Fails on a byte that is none of theirs. */
export function parseAnswers(raw: Buffer, asked: Asked = 'others'): Answer[] {
  const { answers, rest } = parseStream(raw, asked)
  assert.equal(rest.toString('latin1').slice(0, 500), '', 'bytes that are no whole answer')
  return answers
}

const statusLine = /^HTTP\/1\.1 (\d{3}) [A-Z][A-Za-z' -]*$/
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\x20-\x7e]*)$/

/** The whole answers, and what follows the last of them: the beginning of another, if anything. */
export function parseStream(raw: Buffer, asked: Asked = 'others'): { answers: Answer[]; rest: Buffer } {
  const answers: Answer[] = []
  let rest = raw
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) return { answers, rest }
    const [first = '', ...lines] = rest.toString('latin1', 0, headEnd).split('\r\n')
    const status = Number(
      statusLine.exec(first)?.[1] ?? assert.fail(`no status line: ${first.slice(0, 200)}`),
    )
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const [, name = '', value = ''] = headerLine.exec(line) ?? assert.fail(`no header: ${line}`)
      assert.ok(!(name.toLowerCase() in headers), `${name} twice`)
      headers[name.toLowerCase()] = value
    }
    rest = rest.subarray(headEnd + 4)
    if (status === 100) continue
    const body = asked === 'HEAD' ? noBody : readBody(rest, status, headers)
    if (body === null) return { answers, rest: Buffer.concat([Buffer.from('…'), rest]) }
    rest = rest.subarray(body.taken)
    const text = body.bytes.toString()
    const isJson = headers['content-type'] === 'application/json' && text !== ''
    answers.push({ status, headers, text, json: isJson ? JSON.parse(text) : undefined })
  }
}

const noBody = { bytes: Buffer.alloc(0), taken: 0 }

function readBody(
  bytes: Buffer,
  status: number,
  headers: Record<string, string>,
): { bytes: Buffer; taken: number } | null {
  if (status === 204 || status === 304) return noBody
  if (headers['transfer-encoding'] === 'chunked') {
    const chunks: Buffer[] = []
    for (let at = 0; ; ) {
      const line = bytes.indexOf('\r\n', at)
      if (line === -1) return null
      const size = Number.parseInt(bytes.toString('latin1', at, line), 16)
      assert.ok(size >= 0, 'no chunk size')
      if (bytes.length < line + 2 + size + 2) return null
      chunks.push(bytes.subarray(line + 2, line + 2 + size))
      at = line + 2 + size + 2
      if (size === 0) return { bytes: Buffer.concat(chunks), taken: at }
    }
  }
  const length = Number(headers['content-length'] ?? assert.fail('neither Content-Length nor chunked'))
  return bytes.length < length ? null : { bytes: bytes.subarray(0, length), taken: length }
}

/** How many sockets a process holds. */
export function countSockets(pid: number): number {
  let count = 0
  for (const fd of readdirSync(`/proc/${pid}/fd`))
    try {
      if (readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:')) count++
    } catch {
      // Closed meanwhile.
    }
  return count
}

/** The memory a process holds right now, in bytes. */
export function readRss(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}

/** The rows of the system's connections whose own side is this port. */
function readConnections(port: number): string[][] {
  const own = writePort(port)
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map(row => row.trim().split(/\s+/))
    .filter(([, local = '']) => local.endsWith(own))
  // The system's table changes while it is read: a row may come twice.
  return [...new Map(rows.map(row => [`${row[1]} ${row[2]}`, row])).values()]
}

const writePort = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`
const listening = '0A'

/** Whether a process holds it: of one that is closed on both sides, the system alone still knows. */
const isHeld = ([, , , state, , , , , , inode]: readonly string[]) => state !== listening && inode !== '0'

/** Connections that the server of a port holds. */
export function countConnections(port: number): number {
  return readConnections(port).filter(isHeld).length
}

/** How many of these clients a server still holds: a stranger may have connected to its port, of another test that had it before. */
export function countHeld(
  port: number,
  clients: readonly { socket: { localPort?: number | undefined } }[],
): number {
  const ports = new Set(clients.map(({ socket }) => writePort(socket.localPort ?? 0)))
  return readConnections(port).filter(row => isHeld(row) && ports.has(row[2]?.slice(-5) ?? '')).length
}

/** Bytes of answers that the system took from the server of a port, and that its clients, or the one at a port, have no room for. */
export function readUnsent(port: number, clientPort?: number): number {
  const client = clientPort === undefined ? '' : writePort(clientPort)
  return readConnections(port)
    .filter(row => isHeld(row) && row[2]?.endsWith(client))
    .reduce((bytes, [, , , , queues = '']) => bytes + Number.parseInt(queues, 16), 0)
}
