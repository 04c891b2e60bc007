/**
 * A program: two processes serve one port; the first is ended while requests come over kept connections and new ones. Prints
 * what became of each request that has no answer. With `--again`, a client whose new connection was reset asks once more.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { createInterface } from 'node:readline'
import { ask, type Sample } from './load.ts'

const [, , entryPoint = '', token = '', again] = process.argv
const path = '/api/v1/client/cus_ana/invoices'

async function serve(port: string): Promise<{ child: ChildProcess; address: string }> {
  const child = spawn(process.execPath, [entryPoint, 'serve', '--port', port, '--reuse-port', 'on'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, address } = JSON.parse(line)
    if (msg !== 'listening') continue
    child.stdout.resume()
    return { child, address }
  }
  throw new Error('It does not listen.')
}

const processOf = ({ headers }: Sample) => String(headers['request-id']).slice(0, 'req_'.length + 12)

const first = await serve('0')
const second = await serve(new URL(first.address).port)
assert.equal(second.address, first.address)

const samples: Sample[] = []
let isOver = false

async function askOften(agent: Agent | null): Promise<void> {
  while (!isOver) {
    let sample = await ask(first.address + path, token, agent ?? new Agent())
    if (again === '--again' && sample.text.includes('ECONNRESET'))
      sample = await ask(first.address + path, token, agent ?? new Agent())
    samples.push(sample)
  }
}

/** Until so many more were answered, and as many processes did. */
async function answered(count: number, processes: number): Promise<void> {
  const from = samples.length
  const enough = () =>
    samples.length >= from + count && new Set(samples.slice(from).map(processOf)).size >= processes
  while (!enough()) await new Promise(resolve => setTimeout(resolve, 5))
}

const agents = [...Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 })), null, null]
const asking = Promise.all(agents.map(askOften))
await answered(300, 2)
first.child.kill('SIGTERM')
const [code] = await once(first.child, 'exit')
await answered(300, 1)
isOver = true
await asking
for (const agent of agents) agent?.destroy()
second.child.kill('SIGTERM')
await once(second.child, 'exit')
const lost = samples.filter(({ status }) => status !== 200).map(({ status, text }) => `${status} ${text}`)
process.stdout.write(JSON.stringify({ code, answered: samples.length - lost.length, lost }))
