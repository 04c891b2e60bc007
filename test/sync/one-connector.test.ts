/** Two processes and one store: one synchronizes, the other waits, and nothing of one that was overtaken is stored. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { StripeSandbox } from '../../sandbox/stripe/server.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import {
  assertTruth,
  createSyncWorld,
  readStatus,
  readStored,
  type SyncWorld,
} from '../support/checks/sync-truth.ts'
import { assertOneLine, get, type Program } from '../support/clients/cli.ts'
import { engines } from '../support/databases/engines.ts'
import { freezeBetweenWrites } from '../support/databases/sqlite-lock.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'

const waiting = /"msg":"waiting: another process synchronizes this store"/
const receiving = /"msg":"receiving webhooks"/
const hasStarted = /"step":"rereadUnsettled"/

/** Both processes' clocks where one waits until the other's beats stand still: so fast that a busy machine beats in time. */
const speed = 3

async function holderOf(world: SyncWorld): Promise<string | null> {
  return (await readStatus(world.url)).lease.holder
}

/** As if a process of another machine synchronized the store. */
async function leaseElsewhere({ url }: SyncWorld): Promise<void> {
  const store = await openWriteStore(url)
  await store.takeLease(await store.readLease(), 'process 4711 on elsewhere')
  await store.close()
}

/** Another `sync`, which has to wait. */
async function startWaiting(world: SyncWorld, env: Record<string, string> = {}): Promise<Program> {
  const program = world.start(['sync', '--webhooks', '0'], { env })
  await program.waitFor(waiting)
  return program
}

describe('one connector at a time', { concurrency: 2 }, () => {
  for (const engine of engines)
    describe(engine.name, { concurrency: 3 }, () => {
      it('a frozen connector that lost its lease stores nothing and waits again', async t => {
        const world = await createSyncWorld(
          t,
          { invoices: 20, lines: 1, seed: 31 },
          await engine.createStore(t),
        )
        const { sandbox, account } = world
        const held = await holdAnswers(t, sandbox)
        const first = world.start(['sync', '--webhooks', '0'], {
          env: { STRIPE_API_BASE: held.address, ...quickClock(speed) },
        })
        const [, port] = await first.waitFor(/"port":(\d+)},"msg":"receiving webhooks"/)
        await first.waitFor(hasStarted)
        const second = await startWaiting(world, quickClock(speed))

        const id = account.change('finalize')
        held.hold(id)
        sandbox.subscribe(`http://127.0.0.1:${port}/`, world.env.STRIPE_WEBHOOK_SECRET as string)
        const delivering = sandbox.deliver({ since: account.events.length - 1 })
        await held.arrived
        freezeBetweenWrites(first.child, world.url)
        account.change('pay', id)
        await second.waitFor(receiving)
        await second.waitFor(hasStarted)
        assert.equal((await readStored(world.url)).records.get(id)?.invoice.status, 'paid')

        held.release()
        first.child.kill('SIGCONT')
        await first.waitFor(/took over the synchronization of this store/)
        const [delivery] = await delivering
        assert.notEqual(delivery?.status, 200, 'what is not stored is not acknowledged')
        await first.waitFor(waiting)
        assert.match(
          String((await readStatus(world.url)).lease.holder),
          new RegExp(`^process ${second.pid} on `),
        )
        await assertTruth(world.url, account)

        await second.stop()
        await first.waitFor(/(receiving webhooks.*){2}/s)
      })

      it('a waiting connector ends at a signal, and takes over from a silent one', async t => {
        const world = await createSyncWorld(t, { invoices: 10 }, await engine.createStore(t))
        await leaseElsewhere(world)
        const program = await startWaiting(world)
        assert.equal((await program.stop()).code, 0)
        assert.doesNotMatch(program.stdout, receiving)

        const single = world.start(['sync', '--once'], { env: quickClock(10) })
        await single.waitFor(waiting)
        assert.equal((await single.exited).code, 0)
        assert.equal((await readStatus(world.url)).lease.holder, null)
      })

      it('a connector with --no-wait takes over from a killed one', async t => {
        const world = await createSyncWorld(t, { invoices: 10 }, await engine.createStore(t))
        await leaseElsewhere(world)
        const { stdout, exited } = world.start(['sync', '--once', '--no-wait'], { env: quickClock(10) })
        assert.equal((await exited).code, 0, stdout)
        await assertTruth(world.url, world.account)
      })

      it('a second connector reports that it waits, and takes over when the first one ends', async t => {
        const world = await createSyncWorld(t, { invoices: 30, seed: 32 }, await engine.createStore(t))
        const first = await world.receive()
        await first.waitFor(hasStarted)
        assert.match(String(await holderOf(world)), new RegExp(`^process ${first.pid} on `))
        const second = await startWaiting(world)
        const refused = await world.run(['sync', '--once', '--no-wait'])
        assertOneLine(refused, new RegExp(`already synchronized by process ${first.pid} on `))
        assert.doesNotMatch(second.stdout, receiving, 'whoever waits takes no webhooks')

        assert.equal((await first.stop()).code, 0)
        await second.waitFor(receiving)

        const api = world.start(['up', '--port', '0'])
        await api.waitFor(waiting)
        const [, address = ''] = await api.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
        assert.equal((await get(`${address}/ready`)).status, 200, 'serves while it waits')
        assert.equal((await second.stop()).code, 0)
        assert.doesNotMatch(String(await holderOf(world)), new RegExp(`^process ${second.pid} on `))
        await api.waitFor(hasStarted)

        const single = world.start(['sync', '--once'])
        await single.waitFor(waiting)
        world.account.change('create')
        assert.equal((await api.stop()).code, 0)
        assert.equal((await single.exited).code, 0)
        assert.equal((await readStatus(world.url)).lease.holder, null)
        await assertTruth(world.url, world.account)
      })
    })
})

/** The sandbox behind an address of its own, where the answer about one invoice can be held after it was given. */
async function holdAnswers(t: TestContext, sandbox: StripeSandbox) {
  const [arrival, departure] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let held: string | null = null
  const server = createServer(async (request, response) => {
    const { authorization = '' } = request.headers
    const answer = await fetch(sandbox.address + request.url, { headers: { authorization } })
    const text = await answer.text()
    if (held !== null && request.url?.startsWith(`/v1/invoices/${held}`)) {
      arrival.resolve()
      await departure.promise
    }
    const type = answer.headers.get('content-type') ?? ''
    response
      .writeHead(answer.status, { 'content-type': type, date: answer.headers.get('date') ?? '' })
      .end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived: arrival.promise,
    hold(id: string) {
      held = id
    },
    release: () => departure.resolve(),
  }
}
