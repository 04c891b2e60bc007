/** Output on a terminal: readable log lines, colours, JSON. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { healthCommand } from '../../src/cli/commands/health.ts'
import { readableLine } from '../../src/cli/terminal/log.ts'
import { assertFits, createCli, unwrapped } from '../support/clients/cli.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

const root = join(import.meta.dirname, '../..')

describe('a secret in the wrong place of a command line', { concurrency: 2 }, () => {
  const half = `${'aB3_-'.repeat(8)}aB3`
  const stripeKey = 'sk_test_4eC39HqLyjWDarjtT1zdp7dc'
  for (const [args, shown] of [
    [['key', half], "unknown command '…'"],
    // It holds the letters that an access token begins with.
    [['key', 'aB3_-aB3_-aB3_-fatQ9zX2mP7vB4nR8sT1wYaB3_-a'], "unknown command '…'"],
    [['key', 'revoke', `-${half}`], "unknown option '…'"],
    // One key in 64 begins with a dash.
    [['key', 'revoke', `-${half.slice(1)}`], "unknown option '…'"],
    [['sync', stripeKey], 'got 1: sk_test_….'],
    [[stripeKey], "unknown command 'sk_test_…'"],
    [['sync', '--stripe-api-key=anything at all'], "unknown option '--stripe-api-key=…'"],
    [['up', 'whsec_5AbC'], 'got 1: whsec_….'],
    [['status', 'postgres://ana:p@ss/w@127.0.0.1/fatura'], 'got 1: postgres://…@127.0.0.1/fatura.'],
  ] as const)
    it(`is masked in the error message of: ${args.join(' ')}`, async t => {
      const cli = await createCli(t)
      const { code, stdout, stderr } = await cli.run(args)
      assert.deepEqual([code, stdout], [2, ''])
      const [first = ''] = stderr.split('\n')
      assert.ok(first.startsWith('error: ') && first.endsWith(shown), stderr)
    })

  it('a wrong argument without a secret appears in full in the error message', async t => {
    const cli = await createCli(t)
    const path = '/home/Ana/Invoices-2026/in_1MtHbELkdIwHu7ixl4OzzzMv.ndjson'
    assert.equal((await cli.run(['import', path])).stderr, `fatura: There is no file ${path}.\n`)
    const name = 'Backend-for-Lisbon-office-2026-production1'
    assert.match((await cli.run(['status', name])).stderr, new RegExp(`got 1: ${name}\\.`))
    assert.equal((await cli.run(['key', 'add', name, '--create'])).code, 0)
  })
})

describe('the log of fatura serve', () => {
  it('has coloured lines on a terminal unless NO_COLOR is set, and JSON elsewhere', {
    skip:
      !spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') &&
      'there is no script of util-linux',
  }, () => {
    const code = `
      import { createLog } from './src/cli/terminal/log.ts'
      const log = createLog('info')
      log.info({ address: 'http://127.0.0.1:3000', absent: null, counts: { a: 1 } }, 'listening')
      log.warn({ method: 'GET', route: '/live', status: 404, ms: 1.5, customer_id: 'cus_\\x1b[31m' }, 'request')
      log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed')`
    const see = (command: string, env: Record<string, string>) =>
      execFileSync('script', ['-qec', command, '/dev/null'], {
        cwd: root,
        env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', CODE: code, ...env },
        encoding: 'utf8',
      }).replaceAll('\r\n', '\n')
    const command = `'${process.execPath}' --input-type=module -e "$CODE"`
    const plain = see(command, { NO_COLOR: '1' })
    const [first, second, third, ...rest] = plain.split('\n')
    assert.match(
      first ?? '',
      /^\d\d:\d\d:\d\d\.\d{3}Z info {2}listening address=http:\/\/127\.0\.0\.1:3000 counts=\{"a":1\}$/,
    )
    assert.match(second ?? '', /^\S+Z warn {2}GET \/live 404 1\.5 ms customer_id=cus_ \[31m$/)
    assert.match(third ?? '', /^\S+Z ERROR failed$/)
    assert.match(rest.join('\n'), /^ {2}Error: outer\n.* {2}because of:\n {2}Error: inner\n/s)
    assert.doesNotMatch(plain, /\x1b/)
    assert.match(see(command, {}), /^\x1b\[90m\S+Z\x1b\[39m \x1b\[32minfo \x1b\[39m listening/)
    assert.match(see(`${command} | cat`, { FORCE_COLOR: '1' }), /^\{"level":30,[^\n]*"msg":"listening"\}\n/)
  })

  it('reaches a file soon, without waiting for the disk', t => {
    const code = `
      import fs from 'node:fs'
      let waits = 0
      fs.fsyncSync = () => { waits++ }
      const { createLog } = await import('./src/cli/terminal/log.ts')
      createLog('info').info('one line')
      const look = setInterval(() => {
        if (fs.fstatSync(1).size === 0) return
        clearInterval(look)
        fs.writeSync(2, String(waits))
      })`
    const folder = mkdtempSync(join(tmpdir(), 'fatura-log-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'log')
    const file = openSync(path, 'a')
    t.after(() => closeSync(file))
    const args = ['--input-type=module', '-e', code]
    const stdio = ['ignore', file, 'pipe'] as const
    const { stderr } = spawnSync(process.execPath, args, { cwd: root, stdio: [...stdio], encoding: 'utf8' })
    assert.equal(stderr, '0')
    assert.match(readFileSync(path, 'utf8'), /^\{[^\n]*"msg":"one line"\}\n$/)
  })

  it('does not change any other output', () => {
    for (const line of ['plain\n', '"text"\n', 'null\n', '{broken\n']) assert.equal(readableLine(line), line)
  })

  it('has colours with FORCE_COLOR, and none in a pipe', async t => {
    const cli = await createCli(t)
    const run = async (env: Record<string, string>) => {
      const failed = await cli.run(['status', '--database-url', 'odd'], { env })
      const checked = await cli.run(['doctor', '--sample', '0'], { env })
      return [failed.stderr, checked.stdout]
    }
    for (const text of await run({})) assert.doesNotMatch(text, /\x1b/)
    const [failed = '', checked = ''] = await run({ FORCE_COLOR: '1' })
    assert.match(failed, /^\x1b\[31mfatura:\x1b\[39m DATABASE_URL must/)
    assert.match(checked, /^\x1b\[32mok\x1b\[39m {4}Settings/)
  })
})

describe('fatura doctor without a store', () => {
  it('prints lines of at most 80 columns with one piece of advice', async t => {
    const cli = await createCli(t)
    const { stdout } = await cli.run(['doctor', '--sample', '0'])
    assertFits(stdout)
    assert.match(
      unwrapped(stdout),
      /^FAIL {2}Database +There is no database at data\/fatura\.db → Create it with: fatura migrate$/m,
    )
  })
})

describe('the output of --json', () => {
  it('has one object per line, with every time as ISO 8601 in UTC', async t => {
    const cli = await createCli(t)
    const lines = async (...args: string[]) => {
      const { code, stdout, stderr } = await cli.run([...args, '--json'])
      assert.deepEqual([code, stderr], [0, ''], args.join(' '))
      return stdout
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
    }
    const [migrated] = await lines('migrate')
    assert.equal(migrated.from, 0)
    assert.ok(migrated.to >= 1)
    await cli.load(makeInvoice({ id: 'in_1', customer_id: 'cus_ana' }))
    const [created] = await lines('token', 'create', '--customer', 'cus_ana', '--name', 'a')
    assert.match(created.token, /^fat_\w{48}$/)
    const [revoked] = await lines('token', 'revoke', created.id)
    assert.equal(revoked.state, 'revoked')
    const [listed] = await lines('token', 'list')
    const [imported] = await lines('status')
    const [explained] = await lines('explain', 'in_1')
    const [copied] = await lines('copy', 'sqlite:data/fatura.db', 'sqlite:copy.db')
    assert.equal(copied.counts.invoices, 1)
    const moments = [created, revoked, listed, imported, explained].flatMap(object =>
      Object.entries(object).filter(([name, value]) => name.endsWith('_at') && value !== null),
    )
    assert.ok(moments.length >= 7, JSON.stringify(moments))
    for (const [name, value] of moments)
      assert.match(String(value), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, name)
    assert.equal((await cli.run(['account', 'show', '--json'])).stdout, '', 'no account is known')
  })

  it('of fatura import has the counts of imported, changed and invalid invoices', async t => {
    const cli = await createCli(t)
    const input = `${JSON.stringify(makeInvoice({ id: 'in_1' }))}\nodd\n`
    const { stdout } = await cli.run(['import', '-', '--skip-invalid', '--json'], { input })
    assert.deepEqual(JSON.parse(stdout), { imported: 1, changed: 1, unchanged: 0, invalid: 1 })
  })
})

describe('fatura health', () => {
  it('exits with 0 while the service is ready, and otherwise with 1 and the reason', async t => {
    const cli = await createCli(t)
    await cli.load()
    const service = await cli.serve(['--host', '0.0.0.0'])
    const ask = (port: number, ...args: string[]) =>
      cli.run(['health', ...args], { env: { HOST: '0.0.0.0', PORT: String(port) } })
    const ready = await ask(service.port)
    assert.deepEqual([ready.code, ready.stderr], [0, ''])
    assert.match(ready.stdout, /^Ready: http:\/\/127\.0\.0\.1:\d+\/ready answered 200 in \d+ ms\.\n$/)
    const json = JSON.parse((await ask(service.port, '--json')).stdout)
    assert.deepEqual([json.ready, json.status, json.problem], [true, 200, null])
    await service.stop()
    const gone = await ask(service.port)
    assert.equal(gone.code, 1)
    assert.match(gone.stderr, /^fatura: Not ready: nothing listens at .* Is fatura serve running/)
    const told = await ask(service.port, '--json')
    assert.deepEqual([told.code, JSON.parse(told.stdout).ready], [1, false])
  })

  it('shows the answer of a service that is not ready, and waits three seconds for one that hangs', async t => {
    const asked = Promise.withResolvers<void>()
    const server = createServer((request, response) => {
      if (request.headers.host?.startsWith('localhost')) return asked.resolve()
      response.statusCode = 503
      response.end('{"error":{"code":"unavailable","message":"The store does not answer."}}')
    })
    await new Promise<void>(resolve => server.listen(0, resolve))
    t.after(() => server.close().closeAllConnections())
    const { port } = server.address() as AddressInfo
    const args = (host: string) => ['--host', host, '--port', String(port)]
    const cli = await createCli(t)
    const unready = await cli.run(['health', ...args('127.0.0.1')])
    assert.equal(unready.code, 1)
    assert.match(unready.stderr, /answered 503\. The store does not answer\.\n$/)

    const clock = stopClock(t)
    let problem: string | null = null
    healthCommand()
      .parseAsync(args('localhost'), { from: 'user' })
      .catch(error => {
        problem = error.message
      })
    await asked.promise
    await clock.pass(2_999)
    assert.equal(problem, null)
    await clock.pass(1)
    assert.match(String(problem), /did not answer within 3 s/)
  })
})
