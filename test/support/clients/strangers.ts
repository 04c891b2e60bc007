/** Threads of clients without a token. Some pipeline requests that are refused; others open connections and send nothing. */
import { connect, type Socket } from 'node:net'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const pipelining = 20
const emptyEachSecond = 60
/** Each has a port of its own on this side. */
const maxEmpty = 600
/** More would wait on one connection than the service lets wait: it would close. */
const atOnce = 32
const requests = 'GET /api/v1/client/cus_ana/invoices HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(atOnce)

const strangers = {
  pipelining({ port }: { port: number }) {
    const open = () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      let answers = 0
      const send = () => socket.writable && socket.write(requests)
      socket.on('connect', send).on('close', open)
      socket.on('data', (chunk: Buffer) => {
        answers += chunk.toString('latin1').split('HTTP/1.1 ').length - 1
        if (answers < atOnce) return
        answers -= atOnce
        send()
      })
    }
    for (let i = 0; i < pipelining; i++) open()
  },
  silent({ port }: { port: number }) {
    const sockets: Socket[] = []
    setInterval(() => {
      sockets.push(connect(port, '127.0.0.1').on('error', () => {}))
      if (sockets.length > maxEmpty) sockets.shift()?.destroy()
    }, 1_000 / emptyEachSecond)
  },
}

/** Each kind in a thread of its own, so that none slows another down. They end with the process at the latest. */
export function startStrangers(port: number): { stop(): Promise<unknown> } {
  const threads = Object.keys(strangers).map(kind => {
    const thread = new Worker(new URL(import.meta.url), { workerData: { kind, port } })
    thread.unref()
    return thread
  })
  return { stop: () => Promise.all(threads.map(thread => thread.terminate())) }
}

if (!isMainThread) strangers[workerData.kind as keyof typeof strangers]?.(workerData)
