/** `serve --workers`: several processes, one address. */
import assert from 'node:assert/strict'
import { rename } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { describe, it } from 'node:test'
import { openReadPools } from '../../src/store/postgres/pool.ts'
import { assertOneLine, type Cli, createCli, eventually, occupyPort, type Serving } from '../support/cli.ts'
import { ask, startLoad } from '../support/load.ts'
import { makeInvoice } from '../support/records.ts'
import { refusalOf } from '../support/settings.ts'
import { startTraffic } from '../support/traffic.ts'

const list = '/api/v1/client/cus_ana/invoices'

async function serveWithWorkers(cli: Cli, ...args: string[]) {
  await cli.load(makeInvoice({ id: 'in_1' }), makeInvoice({ id: 'in_2' }))
  const token = await cli.createToken()
  const api = await cli.serve(['--rate-limit', 'off', '--log-level', 'debug', ...args])
  return { api, token }
}

/** The part of a request id that names its process. */
const processOf = (requestId: unknown) => String(requestId).slice(0, 'req_'.length + 12)

/** Every line so far; each must be a JSON object of its own. */
const linesOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))

const startedPids = (api: Serving): number[] =>
  linesOf(api.stdout)
    .filter(({ msg }) => msg === 'a worker started')
    .map(({ pid }) => pid)

/** Waits after the ends of workers, in milliseconds. */
const waitsOf = (api: Serving): number[] =>
  linesOf(api.stdout)
    .filter(({ msg }) => msg === 'a worker ended; starting another')
    .map(({ again_in_ms }) => again_in_ms)

/** Asks over connections of their own until so many processes answered. */
async function meetProcesses(api: Serving, token: string, count: number): Promise<Set<string>> {
  const met = new Set<string>()
  await eventually(`${count} processes answer`, async () => {
    const { status, headers } = await ask(api.address + list, token)
    assert.equal(status, 200)
    met.add(processOf(headers['request-id']))
    return met.size === count
  })
  return met
}

/** Sends a signal while requests come: none of them fails, and each is logged once, in whole lines. */
async function stopUnderLoad(api: Serving, token: string, signal: 'SIGTERM' | 'SIGINT'): Promise<void> {
  const told = api.stderr
  const traffic = startTraffic({
    address: api.address,
    paths: [list, '/api/v1/client/cus_ana/invoice/in_1', '/live'],
    token,
    busy: 10,
    idle: 0,
    fresh: 2,
    idleFor: [0, 0],
  })
  await eventually('the load runs', () => traffic.samples.length > 120)
  // Without a delay, who connects at the last moment is refused.
  if (signal === 'SIGINT') await traffic.divert()
  const { code, stdout, stderr } = await api.stop(signal)
  traffic.stop()
  await traffic.ended
  assert.deepEqual([code, stderr], [0, told])
  const failed = traffic.samples.filter(({ status }) => status !== 200)
  assert.deepEqual(failed, [])
  const lines = linesOf(stdout)
  const logged = lines.filter(({ msg }) => msg === 'request').map(line => line.request_id)
  const ids = new Set(logged)
  assert.equal(logged.length, ids.size, 'no request is logged twice')
  for (const { headers } of traffic.samples)
    assert.ok(ids.has(headers['request-id']), 'every answer is logged')
  assert.equal(lines.at(-1).msg, 'stopped')
}

describe('fatura serve --workers', { concurrency: 3 }, () => {
  it('goes on when a worker is killed, and starts another; at SIGTERM fails no request', async t => {
    const cli = await createCli(t)
    const { api, token } = await serveWithWorkers(cli, '--workers', '2', '--shutdown-delay', '3s')
    const before = await meetProcesses(api, token, 2)
    const loops = 6
    const load = startLoad({ address: api.address, paths: [list], token, loops, pause: 20, atMost: 60_000 })
    await eventually('the load runs', () => load.samples.length > 50)
    const [pid = 0] = startedPids(api)
    process.kill(pid, 'SIGKILL')
    const killedAt = load.samples.length
    await eventually('others go on', () => load.samples.length > killedAt + 50)
    await eventually('another is started', () => startedPids(api).length === 3)
    await eventually('it answers', async () => {
      const { headers } = await ask(api.address + list, token)
      return !before.has(processOf(headers['request-id']))
    })
    await load.stop()
    const failed = load.samples.filter(({ status }) => status !== 200)
    // A loop has one connection: only what was on the killed worker's may have been lost.
    assert.ok(failed.length <= loops, `${failed.length} failed: ${failed[0]?.text}`)
    await stopUnderLoad(api, token, 'SIGTERM')
    assert.equal(api.stderr, '')
    assert.match(api.stdout, new RegExp(`"pid":${pid},[^\\n]*"msg":"a worker ended; starting another"`))
  })

  it('waits longer and longer for a worker that cannot start, and takes it back when it can; at SIGINT fails no request', async t => {
    const cli = await createCli(t)
    const { api, token } = await serveWithWorkers(cli, '--workers', '2', '--shutdown-delay', '3s')
    await meetProcesses(api, token, 2)
    await rename(cli.database, `${cli.database}.away`)
    process.kill(startedPids(api)[0] ?? 0, 'SIGKILL')
    await eventually('three tries failed', () => waitsOf(api).length > 3)
    const [first = 0, ...others] = waitsOf(api).slice(0, 4)
    assert.ok(first > 0)
    assert.deepEqual(others, [2 * first, 4 * first, 8 * first])
    assert.equal((await ask(api.address + list, token)).status, 503, 'the other one looks for it, too')
    await rename(`${cli.database}.away`, cli.database)
    await meetProcesses(api, token, 2)
    await stopUnderLoad(api, token, 'SIGINT')
    assert.match(api.stderr, /^(fatura: There is no database at [^\n]+\n)+$/)
    assert.deepEqual(
      linesOf(api.stdout)
        .filter(({ msg }) => msg === 'listening')
        .map(({ workers, address }) => ({ workers, address })),
      [{ workers: 2, address: api.address }],
      'several processes, one address',
    )
  })

  it('reports once what keeps it from starting, and ends', async t => {
    const cli = await createCli(t)
    const serve = ['serve', '--port', '0', '--workers', '2']
    assertOneLine(await cli.run(serve), /data\/fatura\.db/, /fatura migrate/)
    assertOneLine(await cli.run([...serve, '--host', '192.0.2.1', '--migrate']), /192\.0\.2\.1/, /--host/)
    const port = await occupyPort(t)
    assertOneLine(await cli.run(['serve', '--workers', '2', '--port', String(port)]), /in use/, /--port/)
    assertOneLine(await cli.run(['serve'], { env: { WORKERS: '0' } }), /^fatura: WORKERS must be /)
    for (const count of ['-1', '1.5', 'many', '257'])
      assert.match(refusalOf('WORKERS', count), /^WORKERS must be /)
  })

  it('divides the connections to PostgreSQL among the workers, four each at least', () => {
    const most = (workers: number) => {
      const { by_key, others, searches } = openReadPools('postgres://127.0.0.1/none', workers)
      return by_key.options.max + others.options.max + searches.options.max
    }
    // On a small machine one search at a time leaves a core to everything else.
    const alone = availableParallelism() < 4 ? 9 : 10
    assert.deepEqual([1, 2, 3, 4, 8, 64].map(most), [alone, 5, 4, 4, 4, 4])
  })

  it('takes as many workers as there are cores with "auto", and ends them when it is killed itself', async t => {
    const cli = await createCli(t)
    const { api } = await serveWithWorkers(cli, '--workers', 'auto')
    assert.equal((await api.get('/ready')).status, 200)
    const cores = availableParallelism()
    // On one core there is no worker: the process itself serves.
    await eventually('all are started', () => startedPids(api).length === (cores === 1 ? 0 : cores))
    const pids = startedPids(api)
    api.child.kill('SIGKILL')
    await eventually('no worker is left', () => pids.every(pid => !isAlive(pid)))
  })
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
