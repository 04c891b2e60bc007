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
const [firstSeed, seeds] = [Math.floor(Date.now() / 86_400_000) * 1_000_000, 4_000]

export const promises = {
  R1: {
    promise: 'A sync killed at any moment loses and doubles nothing',
    steps: [{ file: 'test/cli/sync.test.ts', only: 'killed at' }],
  },
  R2: {
    promise: 'An acknowledged webhook is stored',
    steps: [{ file: 'test/stripe/webhook.test.ts', only: 'were stored if they were acknowledged' }],
  },
  R3: {
    promise: 'Lists, events and webhooks in any order end equal to Stripe',
    steps: [{ file: 'test/sync/histories.test.ts' }],
  },
  R4: {
    promise: 'A bad upstream harms neither reads nor rows',
    steps: [
      { file: 'test/sync/bad-upstream.test.ts' },
      { file: 'test/stripe/payment-platform.test.ts', only: 'a Stripe that fails' },
    ],
  },
  R5: {
    promise: 'A hung Stripe costs a detail 1 s at most; left alone, 50 ms',
    steps: [{ file: 'test/stripe/payment-platform.test.ts', only: 'a Stripe that hangs costs' }],
  },
  R6: {
    promise: 'A database restart is a blip: 503 with `Retry-After`, 200 again within 2 s',
    steps: [{ file: 'test/store/postgres-faults.serial.test.ts', only: 'a database restart is a blip' }],
  },
  R7: {
    promise: 'A deploy fails no request; a PDF in flight arrives whole',
    steps: [{ file: 'test/http/shutdown.test.ts' }],
  },
  R8: {
    promise: 'Slow, rude and silent clients starve nobody',
    steps: [{ file: 'test/http/rude-clients.test.ts', only: 'slow clients' }],
  },
  R9: { promise: '', steps: [] },
  R10: { promise: '', steps: [] },
  R11: { promise: '', steps: [] },
  R12: { promise: '', steps: [] },
  R13: { promise: '', steps: [] },
  R14: {
    promise: 'One odd record stops nothing',
    steps: [{ file: 'test/stripe/odd-records.test.ts' }],
  },
  R15: {
    promise: 'A replaced, deleted or damaged SQLite file: its content or 503, never two contents',
    steps: [{ file: 'test/store/replaced-file.test.ts' }, { file: 'test/store/damaged-file.test.ts' }],
  },
  R16: {
    promise: 'A dead Citus worker stops only its own customers',
    steps: [{ file: 'test/store/citus-worker-down.test.ts' }],
    needs: 'TEST_CITUS_URL',
  },
  R17: {
    promise: 'Nothing is wrong in silence: [the simulator](#the-simulator)',
    steps: [
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
} satisfies Record<string, Promised>

export type PromiseId = keyof typeof promises
