/**
 * What happens when three times as many requests come as can be served, from clients that do not wait for each other: how many
 * are still served against the peak, how fast the others are refused, and whether /live answers.
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { answersOf, type OpenLoopOptions, runOpenLoop } from '../load/open-loop.ts'
import { cpuSince, readCpu } from '../load/process-cost.ts'
import { describeMachine } from '../machine.ts'
import { type EngineName, engineNames, readFlags } from '../options.ts'
import { largeCustomerId, type Shape } from '../seed/corpus.ts'
import { defaultFolder } from '../seed/data-folder.ts'
import { chooseCustomers, engineLabels, openSeeded } from '../seed/stores.ts'
import { cleanUp, cleanUpOnSignals } from '../servers/clean-up.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { listPath, startService } from '../servers/service.ts'
import { formatTable, median, show, spread } from '../statistics.ts'

const values = readFlags({
  engine: engineNames.join(','),
  rounds: '3',
  seconds: '6',
  times: '3',
  apart: 'no',
  data: defaultFolder,
})
const [rounds, seconds, times] = [values.rounds, values.seconds, values.times].map(Number) as [
  number,
  number,
  number,
]
/** Overload is told from a burst by how long it lasts; what is measured begins after that. */
const leadSeconds = 2
/** That of `npm run bench -- --quick`: seeded once for both. */
const shape: Shape = { customers: 1_000, each: 40, large: [20_000] }

/** Pages of 50 of a large customer, with filters: what a reconciliation asks for. And page 1. */
const filters = [
  '',
  '&status=paid',
  '&ix_status=settled',
  '&date_from=2024-01-01&date_to=2024-12-31',
  '&status=open',
]
const workloads = {
  'pages of 50': (page: number) => `?page_size=50&page=${page}${filters[page % filters.length]}`,
  'page 1': () => '',
}

/** Linux alone. A process's later threads and children stay where it is. */
function keepOn(cores: string, pid: number): void {
  if (values.apart === 'yes') execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, `${pid}`])
}

/** The CPU that the server uses a second, in microseconds, amid what is measured. */
async function readBusy(pid: number): Promise<number> {
  await sleep((leadSeconds + 1) * 1_000)
  const [before, begun] = [readCpu(pid), performance.now()]
  await sleep((seconds - 1) * 1_000)
  return (1_000 * cpuSince(before, pid)) / (performance.now() - begun)
}

async function measure(engine: EngineName): Promise<string[][]> {
  const server = engine === 'postgres' ? await startPostgres(values.data) : null
  const store = await openSeeded({ folder: values.data }, shape, server)
  const service = await startService({ folder: values.data, name: `overload-${engine}`, store })
  keepOn('0', service.pid)
  const { address, headers } = service
  const rows: string[][] = []
  for (const [name, query] of Object.entries(workloads)) {
    const customers = name === 'page 1' ? chooseCustomers(shape, 200) : [largeCustomerId(shape, 0)]
    const requests = Array.from({ length: 200 }, (_, turn) => ({
      path: listPath(customers[turn % customers.length] as string) + query(turn + 1),
      headers,
    }))
    const closed: OpenLoopOptions = { address, requests, ratePerSecond: 30_000, seconds, maxConnections: 64 }
    await runOpenLoop({ ...closed, seconds: 2 })
    const figures: Record<string, number>[] = []
    for (let round = 0; round < rounds; round++) {
      const before = readCpu(service.pid)
      const atPeak = await runOpenLoop(closed)
      const peakCpu = cpuSince(before, service.pid)
      const peak = answersOf(atPeak, 200).count / atPeak.seconds
      const overload = runOpenLoop({
        ...closed,
        ratePerSecond: times * peak,
        maxConnections: 1_000,
        openFirst: 1_000,
        leadSeconds,
      })
      const busy = readBusy(service.pid)
      const live = await runOpenLoop({
        ...{ address, ratePerSecond: 20, seconds, maxConnections: 20, openFirst: 20, leadSeconds },
        requests: [{ path: '/live', headers: {} }],
      })
      const result = await overload
      const [good, shed, alive] = [answersOf(result, 200), answersOf(result, 503), answersOf(live, 200)]
      const goodput = good.count / result.seconds
      const [costAtPeak, cost] = [peakCpu / answersOf(atPeak, 200).count, (await busy) / goodput]
      figures.push({
        ...{
          peak,
          goodput,
          ratio: goodput / peak,
          perCpu: costAtPeak / cost,
          shed: shed.count / (times * peak * seconds),
        },
        ...{ goodP99: good.p99, shedP50: shed.p50, shedP99: shed.p99, live: alive.p99, liveMax: alive.max },
      })
      process.stderr.write(
        `${engine}, ${name}: ${JSON.stringify({ ...figures.at(-1), unsent: result.unsent, failed: result.failed, bare: result.withoutRetryAfter, busy: result.busy })}\n`,
      )
    }
    const all = (figure: string) => figures.map(one => one[figure] ?? Number.NaN)
    rows.push([
      `${engineLabels[engine]}, ${name}`,
      show(median(all('peak')), 0),
      show(median(all('goodput')), 0),
      spread(all('ratio'), 2),
      spread(all('perCpu'), 2),
      `${show(100 * median(all('shed')), 0)} %`,
      show(median(all('goodP99')), 0),
      `${show(median(all('shedP50')), 0)} / ${show(median(all('shedP99')), 0)}`,
      spread(all('live'), 0),
    ])
    service.emptyLog()
  }
  await service.stop()
  return rows
}

cleanUpOnSignals()
keepOn(`1-${availableParallelism() - 1}`, process.pid)
try {
  const rows: string[][] = []
  for (const engine of engineNames)
    if (values.engine.split(',').includes(engine)) rows.push(...(await measure(engine)))
  const head = [
    `At ${times} × the peak`,
    'peak/s',
    'served/s',
    'served to peak (least–most)',
    "the same by the server's CPU",
    'shed',
    'p99 of the served, ms',
    'p50 / p99 of the shed, ms',
    'p99 of /live, ms (least–most)',
  ]
  process.stdout.write(`${describeMachine(null)}\n\n${formatTable(head, rows)}\n`)
} finally {
  await cleanUp()
}
