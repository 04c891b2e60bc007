/** The tours and every command that the docs show: typed into terminals as they stand there, their output compared. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { openOperatorStore } from '../../src/store/engines.ts'
import { eventually } from '../support/clients/cli.ts'
import { compileCache, quickLoading } from '../support/clients/compile-cache.ts'
import {
  consoleBlocks,
  isAsShown,
  type Known,
  lacksTerminal,
  openTerminal,
  type ShownCommand,
  type Terminal,
} from '../support/clients/terminal.ts'
import { createDatabase, createFolder } from '../support/databases/engines.ts'
import { shellEnvironment } from '../support/worlds/clean-copy.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'

const root = join(import.meta.dirname, '../..')
const read = (page: string) => readFileSync(join(root, page), 'utf8')
const blocks = new Map<string, ShownCommand[]>(
  ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: root })].flatMap(page =>
    Array.from(consoleBlocks(read(page)), ([place, commands]): [string, ShownCommand[]] => [
      `${page}: ${place}`,
      commands,
    ]),
  ),
)

const withStripe = 'README.md: Five minutes with Stripe'
const further = 'docs/tour.md: With Stripe'
const withOwnData = 'docs/tour.md: With your own data'

/** The blocks that the tests below type, in this order. */
const typed = {
  stripe: [
    ...[1, 2, 3, 4].map(step => `${withStripe}, ${step}`),
    ...[1, 2, 3].map(step => `${further}, ${step}`),
    'docs/export.md: Export invoices and their PDFs',
    ...[4, 5].map(step => `${further}, ${step}`),
    'docs/postgresql.md: Moving from SQLite to PostgreSQL',
  ],
  ownData: [
    `${withOwnData}, 2`,
    'docs/access.md: Tokens',
    ...[3, 4, 5].map(step => `${withOwnData}, ${step}`),
    'docs/import.md: Import invoices',
    'docs/import.md: Validation',
    'docs/access.md: Customer links',
    'docs/admin.md: Making a link',
    'docs/tour.md: On PostgreSQL',
    'docs/postgresql.md: Roles',
  ],
}

/** Blocks that cannot be typed here, each with its reason. */
const notTyped: Readonly<Record<string, string>> = {
  'docs/admin.md: Looking into the database':
    'sqlite3 is no part of Fatura; test/store/readable-view.test.ts reads the view',
}

/** Commands that end otherwise than with exit code 0. */
const exitCodes: Readonly<Record<string, number>> = {
  'npx fatura reconcile': 1,
  'npx fatura report vat --month 2026-10': 1,
  'npx fatura import bad.ndjson': 1,
}

/** What goes on until Ctrl-C, with what is typed behind it: the pages' ports may be taken. Later commands are typed with the ports that it says. */
const goesOn: Readonly<Record<string, string>> = {
  'npx fatura sandbox': ' --port 0',
  'npx fatura up': ' --port 0',
  'npx fatura serve': ' --port 0',
}

interface Desk {
  folder: string
  /** Texts of the pages, and what is typed in their place. */
  known: Known
  open(env?: Record<string, string>): Promise<Terminal>
  /** Types a block's commands, one after the other, and compares what they write. */
  type(terminal: Terminal, block: string, isTyped?: (command: string) => boolean): Promise<void>
}

/** A folder to work in, and `npx fatura` of this checkout. */
async function sitDown(t: TestContext): Promise<Desk> {
  const folder = await createFolder(t)
  const known: Known = new Map()
  const env = {
    ...(await shellEnvironment(folder)),
    ...quickLoading,
    NODE_COMPILE_CACHE: compileCache,
    TMPDIR: folder,
    SHUTDOWN_DELAY: '0s',
  }
  return {
    folder,
    known,
    open: more => openTerminal(t, folder, { ...env, ...more }),
    async type(terminal, block, isTyped = () => true) {
      for (const { command, lines } of blocks.get(block) ?? assert.fail(`no page has the block ${block}`)) {
        if (!isTyped(command)) continue
        let text = command
        for (const [shown, here] of known) text = text.replaceAll(shown, here)
        const more = goesOn[command]
        if (more !== undefined) {
          terminal.start(text + more)
          await terminal.see(seen => isAsShown(lines, seen, known, 'so far') || null)
          continue
        }
        const { lines: seen, code } = await terminal.run(text)
        const told = `${block}: ${text}\n${seen.join('\n')}`
        assert.equal(code, exitCodes[command] ?? 0, told)
        // A page leaves out what matters to nobody there.
        const isRight = lines.length === 0 || isAsShown(lines, seen, known)
        assert.ok(isRight, `not as the page shows it: ${told}\n\nThe page:\n${lines.join('\n')}`)
      }
    },
  }
}

describe('the commands in the docs', { concurrency: 2 }, () => {
  it('are each tested here, or listed with a reason', () => {
    const named = [...typed.stripe, ...typed.ownData, ...Object.keys(notTyped)]
    assert.deepEqual([...blocks.keys()].sort(), named.sort())
  })

  it('lead through the tour with Stripe without errors', {
    skip: lacksTerminal,
    timeout: 600_000,
  }, async t => {
    const desk = await sitDown(t)
    // Half a minute of the connector's waiting is over in a few seconds.
    const [sandbox, service, third] = [await desk.open(), await desk.open(quickClock(4)), await desk.open()]
    for (const block of typed.stripe)
      switch (block) {
        case `${withStripe}, 1`:
          await desk.type(sandbox, block)
          break
        case `${withStripe}, 2`:
          await desk.type(service, block)
          await eventually('the documents of every month are there', () => areDocumentsThere(desk.folder))
          await desk.type(third, block, command => command.startsWith('export '))
          break
        case `${further}, 2`:
          await desk.type(third, block)
          await service.see(lines => lines.some(line => /step=catchUp changed=[1-9]/.test(line)) || null)
          await t.test('leave no failed stream after a day of changes', () =>
            desk.type(third, block, command => command === 'npx fatura status'),
          )
          break
        case `${further}, 5`:
          await t.test('make fatura doctor end with 0 FAIL after a day of changes', () =>
            desk.type(third, block),
          )
          break
        case 'docs/postgresql.md: Moving from SQLite to PostgreSQL': {
          const { password, ...address } = splitPassword(await createDatabase(t))
          desk.known.set('PGPASSWORD=…', `PGPASSWORD=${password}`)
          desk.known.set('postgres://fatura_owner@127.0.0.1:5432/fatura', address.url)
          // A copy is compared with what stands still.
          await service.interrupt()
          await desk.type(third, block)
          break
        }
        default:
          await desk.type(third, block)
      }
  })

  it('lead through the tour with own data, tokens, links, imports and PostgreSQL', {
    skip: lacksTerminal,
    timeout: 600_000,
  }, async t => {
    const desk = await sitDown(t)
    const [, invoices = ''] =
      /```json\n(.*?)```/s.exec(read('docs/tour.md').split('## With your own data')[1] ?? '') ?? []
    const [first = '', second = ''] = invoices.split('\n')
    await writeFile(join(desk.folder, 'invoices.ndjson'), invoices)
    const bad = [first, second.replace(/"issued_at":"(.{10})[^"]*"/, '"issued_at":"2026-03-02"'), 'not json']
    await writeFile(join(desk.folder, 'bad.ndjson'), bad.join('\n'))
    const [service, other] = [await desk.open(), await desk.open()]
    for (const block of typed.ownData)
      switch (block) {
        case `${withOwnData}, 4`:
          await desk.type(service, block)
          break
        case 'docs/admin.md: Making a link': {
          const admin = await desk.open({ ADMIN_TOKEN: 'a-token-of-the-admin-port', ADMIN_PORT: '0' })
          const settings = 'CUSTOMER_LINK_KEY=$(cat link-key.json) PUBLIC_URL=https://billing.example.com'
          admin.start(`${settings} npx fatura serve --port 0`)
          await admin.see(lines => {
            const [, port] = /admin.*:(\d+)$/.exec(lines.find(line => /admin.*:\d+$/.test(line)) ?? '') ?? []
            return port === undefined ? null : desk.known.set('127.0.0.1:3001', `127.0.0.1:${port}`)
          })
          await desk.type(await desk.open({ ADMIN_TOKEN: 'a-token-of-the-admin-port' }), block)
          break
        }
        case 'docs/tour.md: On PostgreSQL':
          desk.known.set('postgres://fatura_owner:secret@127.0.0.1:5432/fatura', await createDatabase(t))
          await desk.type(other, block)
          break
        case 'docs/postgresql.md: Roles':
          desk.known.set('postgres://fatura_owner:…@127.0.0.1:5432/fatura', await createDatabase(t))
          await desk.type(other, block)
          break
        default:
          await desk.type(other, block)
      }
  })
})

function splitPassword(address: string) {
  const url = new URL(address)
  const { password } = url
  url.password = ''
  return { password, url: url.href }
}

async function areDocumentsThere(folder: string): Promise<boolean> {
  const store = await openOperatorStore(`sqlite:${join(folder, 'data/fatura.db')}`)
  try {
    const stream = (await store.listStreams()).find(({ name }) => name === 'ix:all')
    return stream !== undefined && stream.succeeded_at !== null && stream.cursor === null
  } finally {
    await store.close()
  }
}
