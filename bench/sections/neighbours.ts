/**
 * Whether one token can slow the others: page 1 of small customers at a steady rate, alone, and while another token searches
 * a customer of 100,000 invoices as fast as it can. The two take turns within one run; the ratio is what counts. A third turn
 * has a loop beside the pages that only computes: what a busy core alone does to them on this machine.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { answersOf, type OpenLoopOptions, runOpenLoop } from '../load/open-loop.ts'
import { describeMachine } from '../machine.ts'
import { type EngineName, engineNames, readFlags } from '../options.ts'
import { largeCustomerId, type Shape } from '../seed/corpus.ts'
import { defaultFolder } from '../seed/data-folder.ts'
import { chooseCustomers, engineLabels, openSeeded } from '../seed/stores.ts'
import { cleanUp, cleanUpOnSignals, undoAtEnd } from '../servers/clean-up.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { createServiceToken, listPath, startService } from '../servers/service.ts'
import { formatTable, median, show, spread } from '../statistics.ts'

const values = readFlags({
  engine: engineNames.join(','),
  rounds: '5',
  seconds: '4',
  rate: '200',
  large: '100000',
  data: defaultFolder,
})
const [rounds, seconds, ratePerSecond] = [values.rounds, values.seconds, values.rate].map(Number) as [
  number,
  number,
  number,
]
const shape: Shape = { customers: 1_000, each: 40, large: [Number(values.large)] }

/** Ten words that most invoices hold, one that none holds, and one that one holds. */
const searches = ['2023 2024 0 1 2 3 4 5 6 7', 'nobody', '2023-000123', 'a e i o u']

/** More than its token may have under way and waiting, so some are refused. */
const searchers = 64

/** A process that computes and does nothing else, for so many seconds. */
function computeFor(seconds: number): Promise<unknown> {
  const end = `const end = Date.now() + ${seconds * 1_000}; while (Date.now() < end);`
  const child = spawn(process.execPath, ['--eval', end])
  const stop = undoAtEnd(async () => void child.kill('SIGKILL'))
  return once(child, 'close').then(stop)
}

async function measure(engine: EngineName): Promise<string[]> {
  const server = engine === 'postgres' ? await startPostgres(values.data) : null
  const store = await openSeeded({ folder: values.data }, shape, server)
  const { address, headers, stop } = await startService({
    folder: values.data,
    name: `neighbours-${engine}`,
    store,
  })
  const other = await createServiceToken(store)
  const pages: OpenLoopOptions = {
    ...{ address, ratePerSecond, seconds, maxConnections: 200 },
    requests: chooseCustomers(shape, 200).map(customer => ({ path: listPath(customer), headers })),
  }
  const flood: OpenLoopOptions = {
    ...{ address, ratePerSecond: 400, seconds: seconds + 1, maxConnections: searchers },
    requests: searches.map(q => ({
      path: `${listPath(largeCustomerId(shape, 0))}?q=${encodeURIComponent(q)}`,
      headers: other,
    })),
  }
  await runOpenLoop(pages)
  const alone: number[] = []
  const beside: number[] = []
  const besideLoop: number[] = []
  const [p50s, searched, refused]: [number[][], number[], number[]] = [[[], []], [], []]
  for (let round = 0; round < rounds; round++) {
    const quiet = answersOf(await runOpenLoop(pages), 200)
    const flooding = runOpenLoop(flood)
    await sleep(700)
    const page = await runOpenLoop(pages)
    const loud = answersOf(page, 200)
    const result = await flooding
    const computing = computeFor(seconds + 1)
    await sleep(700)
    const control = answersOf(await runOpenLoop(pages), 200)
    await computing
    if (loud.count + quiet.count < 2 * ratePerSecond * seconds)
      throw new Error(`Pages failed: ${JSON.stringify(page)}`)
    alone.push(quiet.p99)
    beside.push(loud.p99)
    besideLoop.push(control.p99)
    p50s[0]?.push(quiet.p50)
    p50s[1]?.push(loud.p50)
    searched.push(answersOf(result, 200).count / result.seconds)
    refused.push((answersOf(result, 429).count + answersOf(result, 503).count) / result.seconds)
    process.stderr.write(
      `${engine}: p99 ${show(quiet.p99, 2)} ms alone, ${show(loud.p99, 2)} ms beside, ${show(control.p99, 2)} ms beside a loop; ${JSON.stringify(result.byStatus)}\n`,
    )
  }
  await stop()
  const toAlone = (values: number[]) =>
    spread(
      values.map((value, round) => value / (alone[round] ?? Number.NaN)),
      2,
    )
  return [
    engineLabels[engine],
    `${show(median(p50s[0] ?? []), 2)} / ${show(median(alone), 2)}`,
    `${show(median(p50s[1] ?? []), 2)} / ${show(median(beside), 2)}`,
    toAlone(beside),
    toAlone(besideLoop),
    show(median(searched), 0),
    show(median(refused), 0),
  ]
}

cleanUpOnSignals()
try {
  const rows: string[][] = []
  for (const engine of engineNames)
    if (values.engine.split(',').includes(engine)) rows.push(await measure(engine))
  const head = [
    'Page 1, p50 / p99 in ms',
    'alone',
    'beside the searches',
    'ratio of the p99 (least–most)',
    'the same beside a loop that only computes',
    'searches/s',
    'refused/s',
  ]
  process.stdout.write(`${describeMachine(null)}\n\n${formatTable(head, rows)}\n`)
} finally {
  await cleanUp()
}
