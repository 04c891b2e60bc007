/** The promises of docs/reliability.md that have a figure, and the tests that measure it. */
export interface Step {
  /** A test file, or a program that measures. */
  file: string
  /** The tests of the file that are run; all of them when not given. */
  only?: string
  /** Arguments of a program. */
  args?: readonly string[]
  /** The figure in a program's output; null when there is none. */
  readFigure?(output: string): string | null
}

export interface Promised {
  promise: string
  steps: readonly Step[]
  /** A setting of the environment without which it is not measured. */
  needs?: string
}

/** The seeds of the simulator: others every day, and named in the figure. */
const [firstSeed, seeds] = [Math.floor(Date.now() / 86_400_000) * 1_000_000, 2_000]

const histories: Step = { file: 'test/cli/histories.test.ts' }
/**
 * Served at three times the peak against the peak, by the server's CPU: other processes may take a part of the machine.
 * PostgreSQL shares its core with the load, so that what it serves says nothing here.
 */
const minServed = {
  ...{ 'SQLite, pages of 50': 0.8, 'SQLite, page 1': 0.5 },
  ...{ 'PostgreSQL, pages of 50': null, 'PostgreSQL, page 1': null },
}

function readOverload(output: string): string | null {
  const figures = Object.entries(minServed).map(([name, least]) => {
    const row = output.split('\n').find(line => line.startsWith(`| ${name} |`)) ?? ''
    const [, , , , , byCpu = '', shed = '', , , live = ''] = row.split('|').map(cell => cell.trim())
    const liveMs = Number.parseFloat(live.replace(',', ''))
    if (!(liveMs <= 200)) return null
    const prompt = `\`/live\` ${live.split(' ')[0]} ms (p99)`
    if (least === null) return `${name}: ${prompt}`
    // Where nothing is refused, there was no overload.
    if (shed === '0 %' || !(Number.parseFloat(byCpu) >= least)) return null
    return `${name}: ${byCpu.split(' ')[0]} of the peak served, ${shed} refused, ${prompt}`
  })
  return figures.includes(null) ? null : figures.join('; ')
}

/** The fastest start: others may have had the machine during the rest. */
function readStart(output: string): string | null {
  const [, invoices, each = ''] = /^Ready with (\d+) invoices after \d+ ms \((.*)\)/m.exec(output) ?? []
  const starts = each.split(', ').map(Number)
  const ms = Math.min(...starts)
  if (invoices === undefined || ms > 1_000) return null
  return `${invoices} invoices: ready after ${ms} ms, the fastest of ${starts.length}`
}

export const promises = {
  R1: {
    promise: 'A sync killed at any moment loses and doubles nothing',
    steps: [{ file: 'test/cli/sync.test.ts', only: 'killed at' }],
  },
  R2: {
    promise: 'An acknowledged webhook is stored',
    steps: [{ file: 'test/http/stripe-webhook.test.ts', only: 'that were acknowledged are stored' }],
  },
  R3: {
    promise: 'Lists, events and webhooks in any order end equal to Stripe',
    steps: [{ file: 'test/sync/histories.test.ts' }],
  },
  R4: {
    promise: 'A bad upstream harms neither reads nor rows',
    steps: [
      { file: 'test/sync/bad-upstream.test.ts' },
      { file: 'test/sources/invoicexpress/bad-reads.test.ts' },
      { file: 'test/sources/stripe/payment-platform.test.ts', only: 'every fault' },
    ],
  },
  R5: {
    promise: 'A hung Stripe costs a detail 1 s at most; left alone, 50 ms',
    steps: [{ file: 'test/campaign/hung-stripe.test.ts' }],
  },
  R6: {
    promise: 'A database restart is a blip: 503 with `Retry-After`, 200 again within 2 s',
    steps: [{ file: 'test/campaign/postgres-restarts.test.ts' }],
  },
  R7: {
    promise: 'A deploy fails no request; a PDF in flight arrives whole',
    steps: [{ file: 'test/campaign/shutdown.test.ts' }],
  },
  R8: {
    promise: 'Slow, rude and silent clients starve nobody',
    steps: [{ file: 'test/campaign/rude-clients.test.ts' }],
  },
  R9: {
    promise: 'Overload is refused at once with 503, `/live` never; most of the peak is served',
    steps: [
      { file: 'test/http/fairness.test.ts', only: 'far more requests than can be served' },
      {
        file: 'bench/sections/overload.ts',
        args: ['--apart', 'yes', '--rounds', '5', '--seconds', '4'],
        readFigure: readOverload,
      },
    ],
  },
  R10: {
    promise: 'Neither requests nor PDFs stay in memory',
    steps: [{ file: 'test/campaign/memory.test.ts' }],
  },
  R11: {
    promise: 'A full disk fails no read and acknowledges nothing in vain; it resumes by itself',
    steps: [{ file: 'test/store/full-disk.test.ts' }],
  },
  R12: {
    promise: 'A clock a day off, ahead or behind, loses and doubles nothing',
    steps: [{ file: 'test/sync/clocks.test.ts' }, { file: 'test/sync/event-clock.test.ts' }, histories],
  },
  R13: {
    promise: 'A start takes 1 s at most; a killed migration [continues](upgrade.md)',
    steps: [
      { file: 'test/store/migrations.test.ts', only: 'a killed migration pass' },
      { file: 'bench/sections/start.ts', readFigure: readStart },
    ],
  },
  R14: {
    promise: 'One odd record stops nothing',
    steps: [{ file: 'test/sources/stripe/odd-records.test.ts' }],
  },
  R15: {
    promise: 'A replaced, deleted or damaged SQLite file: its content or 503, never two contents',
    steps: [
      { file: 'test/campaign/replaced-file.test.ts' },
      { file: 'test/store/replaced-file.test.ts' },
      { file: 'test/store/damaged-file.test.ts' },
    ],
  },
  R16: {
    promise: 'A dead Citus worker stops only its own customers',
    steps: [{ file: 'test/store/citus-worker-down.test.ts' }],
    needs: 'TEST_CITUS_URL',
  },
  R17: {
    promise:
      'Each row is a state that its source had since `Fatura-Synced-At`; whatever is refused is in `status`: [the simulator](#the-simulator), and real processes',
    steps: [
      histories,
      {
        file: 'test/sim/run.ts',
        args: ['--from', String(firstSeed), '--seeds', String(seeds)],
        readFigure(output) {
          const [, worlds, steps] = /^(\d+) seeds, (\d+) steps, 0 failed/m.exec(output) ?? []
          return worlds === undefined
            ? null
            : `${worlds} worlds from seed ${firstSeed}, ${steps} steps: 0 broken`
        },
      },
    ],
  },
  S2: {
    promise: 'A revoked token is refused by every process within 1 s',
    steps: [{ file: 'test/campaign/access.test.ts', only: 'a revoked token' }],
  },
} satisfies Record<string, Promised>

export type PromiseId = keyof typeof promises
