/** `REUSE_PORT=on`: several processes of `fatura serve` on one port. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { explainListening } from '../../src/cli/start/explain-listening.ts'
import { assertOneLine, createCli, entryPoint, eventually, occupyPort } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { refusalOf } from '../support/worlds/settings.ts'

const notShared = process.platform !== 'linux' && 'this system may have no ports that several processes share'
const patient = { timeout: 600_000 }
const endOneOfTwo = fileURLToPath(new URL('../support/clients/end-one-of-two.ts', import.meta.url))

/** A network of its own, in which the system hands waiting connections on. */
const inNetwork = [
  ...['unshare', '--net', '--map-root-user', 'sh', '-c'],
  'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req && exec "$@"',
  'sh',
]
const [unshare = '', ...unshared] = inNetwork
const noNetwork =
  spawnSync(unshare, [...unshared, 'true']).status !== 0 && 'no network of its own can be made here'

async function end(t: TestContext, before: readonly string[], ...flags: string[]) {
  const cli = await createCli(t)
  await cli.load(makeInvoice({ id: 'in_1' }))
  const token = await cli.createToken()
  const command = [...before, process.execPath, endOneOfTwo, entryPoint, token, ...flags]
  const { stdout } = await promisify(execFile)(command[0] ?? '', command.slice(1), {
    cwd: cli.folder,
    env: { PATH: process.env.PATH, SHUTDOWN_DELAY: '0s', RATE_LIMIT: 'off' },
  })
  return JSON.parse(stdout) as { code: number; answered: number; lost: string[] }
}

describe('several processes on one port', { skip: notShared }, () => {
  it('lose no request when one ends, where the system passes its connections on', {
    ...patient,
    skip: noNetwork,
  }, async t => {
    const { code, answered, lost } = await end(t, inNetwork)
    assert.deepEqual({ code, lost }, { code: 0, lost: [] })
    assert.ok(answered >= 600)
  })

  it('lose no request when one ends, if clients repeat reset requests', patient, async t => {
    const { code, answered, lost } = await end(t, [], '--again')
    assert.deepEqual({ code, lost }, { code: 0, lost: [] })
    assert.ok(answered >= 600)
  })

  it('have admin ports of their own, whose /ready is about their own process', patient, async t => {
    const cli = await createCli(t)
    await cli.load()
    const env = {
      REUSE_PORT: 'on',
      ADMIN_PORT: '0',
      ADMIN_TOKEN: 'an-admin-token-of-the-test',
      SHUTDOWN_DELAY: '600s',
    }
    const first = await cli.serve([], { env })
    const second = await cli.serve(['--port', String(first.port)], { env })
    const adminOf = async (program: typeof first) => {
      const [, address] = await program.waitFor(
        /"address":"(http:[^"]+)","msg":"listening for administration"/,
      )
      return `${address}/ready`
    }
    const [leaving, staying] = [await adminOf(first), await adminOf(second)]
    first.child.kill('SIGTERM')
    await eventually('it leaves', async () => (await ask(leaving, '')).status === 503)
    assert.match((await ask(leaving, '')).text, /about to end/)
    for (let time = 0; time < 20; time++) assert.equal((await ask(staying, '')).status, 200)
  })

  it('need REUSE_PORT in each process, and refuse a port of another program', patient, async t => {
    const cli = await createCli(t)
    const shared = await cli.serve(['--migrate', '--reuse-port', 'on'])
    const handsOn = readFileSync('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').trim() === '1'
    assert.equal(/"msg":"net\.ipv4\.tcp_migrate_req is 0: /.test(shared.stdout), !handsOn)
    assertOneLine(await cli.run(['serve', '--port', String(shared.port)]), /in use/, /--port/)
    const port = String(await occupyPort(t))
    assertOneLine(await cli.run(['serve', '--reuse-port', 'on', '--port', port]), /in use/, /--port/)
    assert.match(refusalOf('REUSE_PORT', 'yes'), /^REUSE_PORT must be .*on.*off/)
  })
})

it('a system without shared ports is reported in one line', () => {
  const refused = Object.assign(new Error('listen ENOTSUP'), { code: 'ENOTSUP' })
  const names = { host: 'HOST', port: 'PORT' }
  assert.match(explainListening(refused, { host: '127.0.0.1', port: 3000 }, names), /REUSE_PORT=off/)
})
