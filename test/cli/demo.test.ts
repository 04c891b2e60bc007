import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { type Invoice, invoiceStatuses, syncStates } from '../../src/domain/invoice.ts'
import {
  assertOneLine,
  type Cli,
  createCli,
  entryPoint,
  eventually,
  get,
  occupyPort,
  type Program,
  unreadEnvFile,
} from '../support/clients/cli.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'

/** For demos that are compared: nothing happens in them for 80 s. */
const slowClock = quickClock(1 / 4)

describe('fatura demo', { concurrency: 6 }, () => {
  // First, as it waits longest: the others run beside it. After 20 s of its clock things begin to happen.
  it('prints the first steps and keeps running', { timeout: 600_000 }, async t => {
    const cli = await createCli(t)
    const demo = await startDemo(cli, quickClock(5))
    const { program, address, link } = demo
    const printed = program.stdout
    const tags = async () =>
      Promise.all(
        demo.customers.map(async ({ id }) =>
          (await demo.get(`/api/v1/client/${id}/invoices`)).headers.get('etag'),
        ),
      )
    const freshness = async () =>
      (await demo.get(`/api/v1/client/${demo.customers[0]?.id}/invoices`)).headers.get('fatura-synced-at')
    const before = await tags()
    const synced = await freshness()

    await t.test('prints first a working link to the page, within 40 rows', async () => {
      assertOneScreen(printed)
      assert.ok(printed.indexOf(link) < printed.indexOf('cus_', printed.indexOf('\n  cus_')))
      const { origin, pathname, hash } = new URL(link)
      assert.deepEqual([origin, pathname], [address, '/'])
      const given = new URLSearchParams(hash.slice(1))
      const token = given.get('t') ?? ''
      const page = await get(link.replace(hash, ''), token)
      assert.equal(page.status, 200)
      assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
      assert.equal((await get(`${address}/api/v1/client/${given.get('c')}/invoices`, token)).status, 200)
    })

    await t.test('prints curl commands that give the printed answers', async () => {
      const asked = demo.curls.map(({ url }) => url)
      assert.equal(asked.length, 7)
      for (const { url } of demo.curls) assert.ok(url.startsWith(`${demo.address}/api/v1/client/`))
      const [history, paid, found, whole, pdf, document, foreign] = await Promise.all(
        demo.curls.map(({ url, token }) => get(url, token)),
      )

      assert.equal(history?.status, 200)
      assert.equal(history.json.invoices.length, 3)
      const moments = history.json.invoices.map(({ issued_at }: Invoice) => issued_at)
      assert.deepEqual(moments, moments.toSorted().reverse(), 'newest first')

      assert.equal(paid?.status, 200)
      assert.ok(paid.json.invoices.length > 0)
      for (const { status, ix_status, issued_at } of paid.json.invoices) {
        assert.deepEqual([status, ix_status], ['paid', 'settled'])
        assert.match(issued_at, new RegExp(`^${new Date().getUTCFullYear() - 1}-`))
      }

      assert.equal(found?.status, 200)
      assert.ok(found.json.invoices.length > 0)
      assert.match(String(asked[2]), /q=[A-Z]+%20[A-Z]+&/, 'in capitals and without accents')
      for (const { display_name } of found.json.invoices) assert.match(display_name, /\p{Lu}\p{Ll}+/u)

      assert.equal(whole?.status, 200)
      assert.equal(whole.json.lines_source, 'payments')
      assert.ok(whole.json.lines.length > 0)
      assert.match(whole.json.downloads.payments, /\/payments\/download$/)

      assert.equal(pdf?.status, 200)
      assert.equal(pdf.headers.get('content-type'), 'application/pdf')
      assert.match(pdf.text, /^%PDF-/)
      assert.equal(document?.status, 200)
      assert.match(document.text, /^%PDF-/)
      assert.notEqual(document.text, pdf.text, 'the certified document is another one')

      assert.equal(foreign?.status, 404)
      assert.equal(foreign.json.error.code, 'invoice_not_found')
      assert.equal((await get(`${demo.address}/docs`)).status, 200)
    })

    const skip = !hasCurl() && 'there is no curl on this machine'
    await t.test('prints curl commands that can be pasted into a shell', { skip }, async () => {
      for (const [index, { line }] of demo.curls.entries()) {
        const { stdout } = await promisify(execFile)(
          'sh',
          ['-c', `${demo.exports}${line} -w '\\n%{http_code}'`],
          {
            env: { PATH: process.env.PATH ?? '' },
            cwd: cli.folder,
          },
        )
        const [, body = '', status] = /^(.*)\n(\d+)$/s.exec(stdout) ?? []
        assert.equal(status, index === demo.curls.length - 1 ? '404' : '200', line)
        const [, file] = / -o (\w+\.pdf) /.exec(line) ?? []
        if (file !== undefined) assert.match(await readFile(join(cli.folder, file), 'latin1'), /^%PDF-/)
        else assert.equal(typeof JSON.parse(body), 'object')
      }
    })

    await t.test('receives webhooks that change the answers while it runs', async () => {
      await program.waitFor(/webhook: invoice\.\w+, applied/)
      await eventually(
        'an answer changes',
        async () => JSON.stringify(await tags()) !== JSON.stringify(before),
      )
      await eventually('what is told of its age follows', async () => (await freshness()) !== synced)
      await program.waitFor(/documents: \d+ invoices changed/)
      assertOneScreen(program.stdout)
    })
  })

  // One is started beside a file .env that it would fail with, the other where the default port is in use; each is stopped
  // by a signal of its own.
  it('has the same data at two starts, with a different token for each', async t => {
    const occupied = createServer().listen(3000, '127.0.0.1')
    t.after(() => occupied.close())
    const isHeld = await once(occupied, 'listening').then(
      () => true,
      error => {
        assert.equal(error.code, 'EADDRINUSE')
        return false
      },
    )
    const [usual, elsewhere] = [await createFolders(t), await createFolders(t)]
    await writeFile(join(usual.cli.folder, '.env'), unreadEnvFile)
    const [first, second] = await Promise.all([
      startDemo(usual.cli, { TMPDIR: usual.temporary, ...slowClock }),
      startDemo(elsewhere.cli, { TMPDIR: elsewhere.temporary, LOG_LEVEL: 'info', ...slowClock }, []),
    ])
    assert.notEqual(first.token, second.token)
    assert.deepEqual(first.customers, second.customers)
    // A customer beside the other; of every so many invoices the whole.
    const read = (demo: Demo, every: number) =>
      Promise.all(
        demo.customers.map(async ({ id }) => {
          const found: { invoice: Invoice; detail: string | null }[] = []
          for (const [index, invoice] of (await demo.list(id)).entries()) {
            const isRead = index % every === 0
            const detail = isRead && (await demo.get(`/api/v1/client/${id}/invoice/${invoice.id}`)).text
            found.push({ invoice, detail: detail || null })
          }
          return found
        }),
      )
    const [one, other] = await Promise.all([read(first, 1), read(second, 6)])
    assert.deepEqual(
      one.map(found =>
        found.map(({ invoice, detail }, index) => ({ invoice, detail: index % 6 ? null : detail })),
      ),
      other,
    )
    const [{ id = '' } = {}] = first.customers
    assert.equal((await get(`${second.address}/api/v1/client/${id}/invoices`, first.token)).status, 401)

    await t.test('has every kind of customer, status, sync state and currency', () => {
      assert.ok(first.customers.length >= 3)
      for (const [index, { id, count, currency }] of first.customers.entries()) {
        const theirs = one[index] ?? []
        assert.equal(theirs.length, count, `${id} has as many as was printed`)
        for (const { invoice } of theirs)
          assert.deepEqual([invoice.customer_id, invoice.currency], [id, currency])
      }
      const invoices = one.flat().map(({ invoice }) => invoice)
      const values = (field: keyof Invoice) => new Set(invoices.map(invoice => invoice[field]))
      assert.ok(invoices.length >= 200, `${invoices.length} invoices`)
      assert.equal(values('id').size, invoices.length)
      assert.deepEqual([...values('status')].toSorted(), invoiceStatuses.toSorted())
      assert.deepEqual([...values('ix_sync_state')].toSorted(), syncStates.toSorted())
      assert.ok(values('currency').isSupersetOf(new Set(['eur', 'jpy', 'kwd'])))
      for (const invoice of invoices) {
        const { subtotal_cents, discount_cents, tax_cents, total_cents } = invoice
        // Tax is on top, or within.
        const net = subtotal_cents - discount_cents
        assert.ok([net, net + tax_cents].includes(total_cents), `the sum of ${invoice.id}`)
        assert.equal(
          invoice.ix_id === null,
          invoice.ix_sync_state !== 'synced',
          `the document of ${invoice.id}`,
        )
      }
    })

    await t.test('has lines from the payment platform that add up', () => {
      for (const { detail } of one.flat()) {
        const { subtotal_cents, discount_cents, lines, lines_source } = JSON.parse(detail ?? '')
        assert.equal(lines_source, 'payments')
        const sum = (field: string) =>
          lines.reduce((total: number, line: Record<string, number>) => total + (line[field] ?? 0), 0)
        assert.deepEqual([sum('subtotal_cents'), sum('discount_cents')], [subtotal_cents, discount_cents])
      }
    })

    await t.test('takes another port when the default port is in use', async () => {
      // Another program that held the port may have let go of it meanwhile.
      if (isHeld) assert.notEqual(new URL(second.address).port, '3000')
      assert.equal((await get(`${second.address}/ready`)).status, 200)
    })

    await t.test(
      'exits with 0 at a signal, removes its files, and logs requests only when asked',
      async () => {
        const endings = [
          [first, usual, ['.env', 'temporary'], 'SIGINT', /^(?!.*"msg":"request")/s],
          [second, elsewhere, ['temporary'], 'SIGTERM', /"route":"\/live".*"msg":"request"/],
        ] as const
        const check = async ([demo, { cli, temporary }, there, signal, logged]: (typeof endings)[number]) => {
          assert.match((await readdir(temporary)).join(), /^fatura-demo-\w+$/)
          await get(`${demo.address}/live`)
          const { code, stdout, stderr } = await demo.program.stop(signal)
          assert.deepEqual([code, stderr], [0, ''], signal)
          assert.match(stdout, logged)
          assert.deepEqual(await readdir(temporary), [])
          assert.deepEqual((await readdir(cli.folder)).sort(), there, 'nor in the working directory')
        }
        await Promise.all(endings.map(check))
      },
    )
  })

  it('removes its files when it is stopped before it is ready', async t => {
    const { cli, temporary } = await createFolders(t)
    const program = cli.start(['demo', '--port', '0'], { env: { TMPDIR: temporary } })
    await eventually('it has begun', async () => (await readdir(temporary)).length > 0)
    const { code, stderr } = await program.stop('SIGINT')
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(await readdir(temporary), [])
  })

  it('refuses a chosen port that is in use, and removes its files', async t => {
    const { cli, temporary } = await createFolders(t)
    const port = await occupyPort(t)
    const outcome = await cli.run(['demo', '--port', String(port)], { env: { TMPDIR: temporary } })
    assertOneLine(outcome, new RegExp(`\\b${port}\\b`), /--port/)
    assert.deepEqual(await readdir(temporary), [])
  })

  it('ends by itself when its start fails, and removes its files', async t => {
    const { temporary } = await createFolders(t)
    // No file may be larger than 64 KB: there is no room for the store.
    const demo = execFile(
      'sh',
      ['-c', `ulimit -f 64 && exec '${process.execPath}' '${entryPoint}' demo --port 0`],
      {
        env: { ...process.env, TMPDIR: temporary },
        timeout: 60_000,
        killSignal: 'SIGKILL',
      },
    )
    assert.deepEqual(await once(demo, 'close'), [1, null])
    assert.deepEqual(await readdir(temporary), [])
  })

  it('reports a missing folder for temporary files in one line', async t => {
    const cli = await createCli(t)
    const outcome = await cli.run(['demo', '--port', '0'], { env: { TMPDIR: join(cli.folder, 'missing') } })
    assertOneLine(outcome, /missing/)
  })
})

interface Demo {
  program: Program
  address: string
  token: string
  /** The page, with a token. */
  link: string
  /** The lines that the others need. */
  exports: string
  /** The lines to paste, whole and taken apart. */
  curls: { line: string; token: string; url: string }[]
  customers: { id: string; count: number; currency: string }[]
  get(path: string): ReturnType<typeof get>
  /** All the invoices of a customer, page by page. */
  list(customer: string): Promise<Invoice[]>
}

async function startDemo(
  cli: Cli,
  env: Record<string, string> = {},
  args: readonly string[] = ['--port', '0'],
): Promise<Demo> {
  const program = cli.start(['demo', ...args], { env })
  await program.waitFor(/Ctrl-C stops the demo[^\n]*\n/)
  const { stdout } = program
  const [link = ''] = /http:\S+#t=\S+/.exec(stdout) ?? []
  const [, address = ''] = /Serving at (http:\/\/\S+)\. Ctrl-C/.exec(stdout) ?? []
  const [, token = ''] = /\n {2}export TOKEN=(fat_\w{48})\n/.exec(stdout) ?? []
  const [, api = ''] = /\n {2}export API=(http:\S+)\n/.exec(stdout) ?? []
  const exports = [...stdout.matchAll(/^ +(export .*\n)/gm)].map(([, line = '']) => line).join('')
  const curls = [...stdout.matchAll(/^ +(curl .*)$/gm)].map(([, line = '']) => {
    const [, path] =
      /^curl -s(?: -o \w+\.pdf)? -H "Authorization: Bearer \$TOKEN" "\$API(\/[^" ]+)"$/.exec(line) ?? []
    return { line, token, url: api + path }
  })
  const customers = [...stdout.matchAll(/^ +(cus_\w+) +(\d+) invoices in ([a-z]{3})\b/gm)].map(
    ([, id = '', count, currency = '']) => ({ id, count: Number(count), currency }),
  )
  const demo: Demo = {
    program,
    address,
    token,
    link,
    exports,
    curls,
    customers,
    get: path => get(address + path, token),
    async list(customer) {
      const invoices: Invoice[] = []
      for (let page = 1, pages = 1; page <= pages; page++) {
        const { json } = await demo.get(`/api/v1/client/${customer}/invoices?page_size=50&page=${page}`)
        invoices.push(...json.invoices)
        pages = json.total_pages
      }
      return invoices
    },
  }
  return demo
}

/** As on a terminal of 80 characters a row, with the row that is typed on. */
function assertOneScreen(output: string): void {
  const rows = output.split('\n').reduce((total, line) => total + Math.max(1, Math.ceil(line.length / 80)), 0)
  assert.ok(rows <= 40, `${rows} rows:\n${output}`)
}

/** A working directory with nothing in it but a folder for temporary files. */
async function createFolders(t: TestContext): Promise<{ cli: Cli; temporary: string }> {
  const cli = await createCli(t)
  const temporary = join(cli.folder, 'temporary')
  await mkdir(temporary)
  return { cli, temporary }
}

function hasCurl(): boolean {
  return (process.env.PATH ?? '').split(delimiter).some(folder => existsSync(join(folder, 'curl')))
}
