/** Progress of a long command, and the time that is left. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pino } from 'pino'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { createMovingLine, createProgress } from '../../src/cli/terminal/progress.ts'
import type { BillingSource, ListFilter } from '../../src/sources/source.ts'
import { createBillingSource } from '../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../src/sources/stripe/map-claim.ts'
import { listRanges } from '../../src/sync/invoices/list-ranges.ts'
import { wholeList } from '../../src/sync/invoices/ranges.ts'

/** Where a terminal would be; what was written to it is kept. */
function createScreen(isTTY: boolean) {
  const written: string[] = []
  const screen = { isTTY, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream
  return { line: createMovingLine(screen), written }
}

test('a terminal shows a progress line after two seconds, with the rate and the remaining time', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const { line, written } = createScreen(true)
  const progress = createProgress('invoices', line)
  progress.update('listed', 100, 0.1)
  assert.deepEqual(written, [], 'what takes less needs no progress')
  t.mock.timers.setTime(1_010_000)
  progress.update('listed', 1_000, 0.25)
  progress.update('listed', 1_001, 0.25)
  assert.deepEqual(written, ['1000 invoices listed … 10.0 s, 100 invoices/s, about 30 s left'])
  t.mock.timers.setTime(1_100_000)
  progress.update('listed', 2_000, 0.02)
  assert.match(written.at(-1) ?? '', /^2000 invoices listed … 100\.0 s, 20 invoices\/s, about 82 min left$/)
  t.mock.timers.setTime(1_101_000)
  progress.update('saved', 3_000)
  assert.doesNotMatch(written.at(-1) ?? '', /left/, 'nothing is promised that nobody knows')
  progress.end()
  assert.equal(written.at(-1), '\r\x1b[K')
})

test('a finished step shows no remaining time', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const { line, written } = createScreen(true)
  const progress = createProgress('invoices', line)
  t.mock.timers.setTime(1_010_000)
  progress.update('listed', 950, 0.95)
  progress.update('listed', 1_000, 1)
  assert.deepEqual(written, [
    '950 invoices listed … 10.0 s, 95 invoices/s, about 1 s left',
    '\r\x1b[K',
    '1000 invoices listed … 10.0 s, 100 invoices/s',
  ])
})

test('an output that is not a terminal shows plain progress lines at intervals', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const { line, written } = createScreen(false)
  const progress = createProgress('invoices', line)
  for (let seconds = 0; seconds <= 25; seconds++) {
    t.mock.timers.setTime(1_000_000 + seconds * 1_000)
    progress.update('listed', seconds, 0.5)
  }
  progress.end()
  assert.equal(written.length, 2)
  for (const line of written) assert.match(line, /^\d+ invoices listed … [\x20-\x7e]+ left\n$/)
})

test('several progress displays share one line, which is always below the printed lines', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const { line, written } = createScreen(true)
  const [invoices, documents] = [createProgress('invoices', line), createProgress('documents', line)]
  t.mock.timers.setTime(1_010_000)
  invoices.update('listed', 10)
  documents.update('read', 20)
  invoices.print('stays')
  documents.end()
  assert.deepEqual(written, [
    '10 invoices listed … 10.0 s, 1 invoices/s',
    '\r\x1b[K',
    '20 documents read … 10.0 s, 2 documents/s',
    '\r\x1b[K',
    'stays\n',
  ])
})

test('a log line or a result on a terminal clears the progress line', { skip: !hasScript() }, () => {
  const code = `
    import { createLog } from './src/cli/terminal/log.ts'
    import { movingLine, printResult } from './src/cli/terminal/progress.ts'
    const log = createLog('info')
    movingLine.draw('10 invoices listed')
    log.info('first')
    log.info('second')
    movingLine.draw('20 invoices listed')
    printResult('done\\n')`
  const seen = execFileSync(
    'script',
    ['-qec', `'${process.execPath}' --input-type=module -e "$CODE"`, '/dev/null'],
    { cwd: join(import.meta.dirname, '../..'), env: { ...process.env, CODE: code }, encoding: 'utf8' },
  )
  assert.match(
    seen.replaceAll('\r\n', '\n'),
    /^10 invoices listed\r\x1b\[K[^\n]*info[^\n]* first\n[^\n]*info[^\n]* second\n20 invoices listed\r\x1b\[Kdone\n$/,
  )
})

/** The one of util-linux runs a command on a terminal of its own. */
function hasScript(): boolean {
  return spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') === true
}

test('a long list of unknown length shows its progress', async t => {
  const sandbox = await startStripeSandbox({ invoices: 2_500, seed: 3 })
  t.after(() => sandbox.close())
  const stored = new Set<string>()
  const told: (number | null)[] = []
  let stamp = 0
  await listRanges({
    source: createBillingSource({ apiKey: 'sk_test_sandbox', base: sandbox.address }, defaultKeys),
    log: pino({ level: 'silent' }),
    signal: t.signal,
    ranges: [wholeList],
    parallel: 16,
    commits: { ask: async question => ({ ...(await question()), askedAt: ++stamp, answeredAt: ++stamp }) },
    async store(pages) {
      for (const { answers } of pages) for (const { id } of answers) stored.add(id)
    },
    onProgress: (_, part) => told.push(part),
  })
  assert.deepEqual(stored, new Set(sandbox.account.invoices.keys()))
  const parts = told.filter(part => part !== null)
  assert.ok(parts.length >= 5, `${parts.length} of ${told.length}`)
  assert.equal(parts.at(-1), 1)
  // Its 25 pages, and few for where nothing is.
  assert.ok(
    Number(sandbox.requests.get('list_invoices')) <= 25 + 40,
    String(sandbox.requests.get('list_invoices')),
  )
})

test('the remaining time is estimated from the density of invoices over time', async t => {
  const [now, day] = [1_780_000_000, 86_400]
  const spread = (count: number, from: number, to: number) =>
    Array.from({ length: count }, (_, n) => now - Math.round(from + ((to - from) * n) / count))
  // Nine of ten are of the last month, the others of eight years.
  const all = [...spread(18_000, 0, 30 * day), ...spread(2_000, 30 * day, 8 * 365 * day)]
  const source = {
    async listInvoices(after: string | null, { from = 0, before = Number.POSITIVE_INFINITY }: ListFilter) {
      await nextTurn()
      const start = after === null ? 0 : Number(after.slice(3)) + 1
      const rest = [...all.entries()]
        .slice(start)
        .filter(([, created]) => created >= from && created < before)
      const page = rest.slice(0, 100)
      return {
        answers: page.map(([n]) => ({ id: `in_${n}`, customer_id: null, found: null })),
        unfit: [],
        next: rest.length > 100 ? `in_${page.at(-1)?.[0]}` : null,
        began: page[0]?.[1] ?? 0,
        reached: page.at(-1)?.[1] ?? 0,
      }
    },
  } as unknown as BillingSource
  const told: [done: number, part: number][] = []
  await listRanges({
    source,
    log: pino({ level: 'silent' }),
    signal: t.signal,
    ranges: [wholeList],
    parallel: 16,
    commits: { ask: async question => ({ ...(await question()), askedAt: 0, answeredAt: 0 }) },
    store: async () => {},
    onProgress: (done, part) => part !== null && told.push([done, part]),
  })
  const ratios = told.map(([done, part]) => ((done / part - done) / (all.length - done)).toFixed(2))
  t.diagnostic(`guessed, of what was left: ${ratios}`)
  assert.ok(told.length > 3, `${told}`)
  for (const [done, part] of told) {
    const left = all.length - done
    const guess = done / part - done
    if (left > all.length / 20) assert.ok(guess > left / 4 && guess < left * 4, `of what was left: ${ratios}`)
  }
})
