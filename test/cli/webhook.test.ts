/** `fatura webhook`, and the webhooks of a running `fatura sync`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { createSyncWorld, readStored } from '../support/checks/sync-truth.ts'
import { assertOneLine, eventually } from '../support/clients/cli.ts'

describe('fatura webhook', () => {
  it('shows failures of an outgoing webhook in list, status and doctor, and continues it with replay', async t => {
    const world = await createSyncWorld(t, { invoices: 6, seed: 5 })
    await world.run(['migrate'])
    const received: { headers: Record<string, string>; body: string }[] = []
    let status = 500
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const part of request) body += part
      if (status === 204) received.push({ headers: request.headers as Record<string, string>, body })
      response.writeHead(status).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`

    assertOneLine(
      await world.run(['webhook', 'add', address]),
      /must begin with https \(http needs OUTGOING_WEBHOOKS_PRIVATE=on\)/,
    )
    const env = { OUTGOING_WEBHOOKS_PRIVATE: 'on' }
    const added = await world.cli.run(['webhook', 'add', address], { env })
    const { id, secret } = JSON.parse(added.stdout)
    assert.match(
      added.stderr,
      new RegExp(`^Outgoing webhook ${id} gets changes of every customer from now on`),
    )
    const sync = world.start(['sync'], { env })
    const lineOf = async (command: string[]) => {
      const { stdout } = await world.run([...command, '--json'])
      return stdout
        .split('\n')
        .filter(line => line.includes(id))
        .map(line => JSON.parse(line))[0]
    }
    await eventually(
      'the first attempts failed',
      async () => (await lineOf(['webhook', 'list'])).attempts >= 1,
    )
    assert.equal((await lineOf(['status'])).error, 'answered 500')
    const doctor = await lineOf(['doctor'])
    assert.equal(doctor.result, 'warn')
    assert.match(doctor.detail, /failed attempts\. At the last one, the receiver answered 500\. Changes wait/)
    assert.equal((await world.run(['webhook', 'pause', id])).stdout, `Paused ${id}.\n`)
    status = 204
    assert.match((await world.run(['status'])).stdout, new RegExp(`${id} is paused`))
    await world.run(['webhook', 'replay', id])
    const { records } = await readStored(world.url)
    const taken = () => new Set(received.map(({ body }) => JSON.parse(body).data.invoice_id))
    await eventually('all came', () => taken().size === records.size)
    for (const { body, headers } of received) new Webhook(secret).verify(body, headers)
    const list = await lineOf(['webhook', 'list'])
    assert.deepEqual([list.state, list.attempts, list.secret], ['active', 0, undefined])
    assert.equal((await world.run(['webhook', 'remove', id])).stdout, `Removed ${id}.\n`)
    assertOneLine(await world.run(['webhook', 'replay', id]), /There is no outgoing webhook/)
    assert.match((await world.run(['webhook', 'list'])).stdout, /^There are no outgoing webhooks yet/)
    sync.child.kill('SIGTERM')
    await once(sync.child, 'exit')
  })
})
