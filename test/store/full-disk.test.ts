/** A SQLite store on a disk that gets full under `fatura up`: reads go on, nothing is acknowledged in vain, and it resumes by itself. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import type { StripeEvent } from '../../sandbox/stripe/objects.ts'
import { post, sign } from '../../sandbox/stripe/webhooks.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import { createSyncWorld, trueRecord, truthOf, webhookSecret } from '../support/checks/sync-truth.ts'
import { createStoredToken, eventually, get } from '../support/clients/cli.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'

/** A disk of its own for one program: Linux, and the right to make one. */
const canMount =
  spawnSync('unshare', ['--map-root-user', '--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0

it('a full disk fails no read, and every acknowledged webhook is stored', {
  skip: canMount ? false : 'there is no disk to fill',
}, async t => {
  const world = await createSyncWorld(t, { invoices: 40, lines: 1, seed: 11 })
  const { account, cli, sandbox } = world
  const disk = join(cli.folder, 'disk')
  await mkdir(disk)
  const program = join(cli.folder, 'on-small-disk')
  const mount = `mount -t tmpfs -o size=16m none '${disk}' && cp -a '${disk}-before/.' '${disk}'`
  const inside = `${mount} && exec '${process.execPath}' "$@"`
  const script = `#!/bin/sh\nexec unshare --map-root-user --mount sh -c '${inside.replaceAll("'", `'\\''`)}' - "$@"\n`
  await writeFile(program, script, { mode: 0o755 })
  await mkdir(`${disk}-before`)
  const token = await createStoredToken(`sqlite:${disk}-before/fatura.db`)
  // It comes back to a round that failed after seconds, by its own clock.
  const env = { DATABASE_URL: `sqlite:${disk}/fatura.db`, ...quickClock(10) }
  const up = world.start(['up', '--port', '0', '--webhooks', '0', '--rate-limit', 'off'], {
    env,
    node: program,
  })
  const [, address = ''] = await up.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
  const [, port] = await up.waitFor(/"port":(\d+)},"msg":"receiving webhooks"/)
  await up.waitFor(/"step":"rereadUnsettled".*"msg":"synchronized"/)
  // Only webhooks bring anything.
  sandbox.faults.set('list_events', 'hang')

  const read = async (id: string) => {
    const customer = account.invoices.get(id)?.customer
    return get(`${address}/api/v1/client/${customer}/invoice/${id}`, token)
  }
  const some = [...truthOf(account).keys()].slice(0, 5)
  const send = (event: StripeEvent) => {
    const body = JSON.stringify(event)
    return post(`http://127.0.0.1:${port}/`, body, sign(body, webhookSecret), {
      method: 'POST',
      timeoutMs: 120_000,
    })
  }
  const sent: { id: string; status: number }[] = []
  const sendNew = async () => {
    const id = account.change('create')
    const status = await send(account.events.at(-1) as StripeEvent)
    if (trueRecord(account, id) !== null) sent.push({ id, status })
    return status
  }

  let [reads, refused] = [0, 0]
  for (let round = 0; round < campaign(1, 10); round++) {
    const ballast = `/proc/${up.pid}/root${disk}/ballast`
    await fill(ballast)
    for (let isFull = false; !isFull; ) {
      isFull = (await sendNew()) === 503
      await fill(ballast)
    }
    for (let more = 0; more < 5; more++) assert.equal(await sendNew(), 503)
    refused += 6
    for (const id of some) {
      assert.equal((await read(id)).status, 200)
      reads++
    }
    await rm(ballast)
    await eventually('webhooks are taken again, without a restart', async () => (await sendNew()) === 200)
    for (const { id, status } of sent)
      if (status === 200) assert.equal((await read(id)).json.id, id, `${id} was acknowledged`)
  }
  sandbox.faults.clear()
  await eventually('what was refused is there, too', async () => {
    const missing = await Promise.all(sent.map(async ({ id }) => (await read(id)).status !== 200))
    return !missing.includes(true)
  })
  assert.equal((await up.stop()).code, 0)
  reportFigure(
    t,
    'R11',
    `full ${campaign(1, 10)} times: ${reads} of ${reads} reads 200, ${refused} webhooks 503, 0 acknowledged and missing`,
  )
})

/** Writes until there is no room. */
async function fill(path: string): Promise<void> {
  const file = await open(path, 'a')
  for (const size of [65_536, 4_096])
    for (;;) {
      const written = await file.write(Buffer.alloc(size)).catch(() => null)
      if (written === null || written.bytesWritten < size) break
    }
  await file.close()
}
