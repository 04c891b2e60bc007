/**
 * `npm run sim`: `-- --seed N` runs one world and shows its last steps; `-- --from N --seeds N` runs many; `-- --planted` changes one
 * line of a copy after the other, and shows in how many worlds each is found, the first few alone. `-- --postgres` runs worlds on a real
 * server, which are slower.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Planted, planted } from './planted.ts'
import { formatOutcome, openStage } from './world.ts'

const options = {
  seed: { type: 'string' },
  from: { type: 'string', default: '1' },
  seeds: { type: 'string', default: '2000' },
  short: { type: 'boolean', default: false },
  /** On a real server. */
  postgres: { type: 'boolean', default: false },
  planted: { type: 'boolean', default: false },
  /** Only the planted faults with this in their names. */
  only: { type: 'string', default: '' },
  /** Worlds that fail before it stops. */
  most: { type: 'string', default: '3' },
} as const
const values = readOptions()
const write = (text: string) => process.stdout.write(`${text}\n`)

if (values.planted) runPlanted()
else if (values.seed !== undefined) await runSeeds(Number(values.seed), 1)
else await runSeeds(Number(values.from), Number(values.seeds))

function readOptions() {
  try {
    const { values } = parseArgs({ options })
    const numbers = [values.seed ?? '1', values.from, values.seeds, values.most]
    if (numbers.every(text => /^\d+$/.test(text))) return values
  } catch {}
  process.stderr.write(
    'Usage: npm run sim -- [--seed N | --from N --seeds N] [--short] [--postgres] [--most N] [--planted [--only NAME]]\n',
  )
  process.exit(2)
}

async function runSeeds(from: number, count: number): Promise<void> {
  const stage = values.postgres
    ? await (await import('./postgres-stage.ts')).openPostgresStage(values.short)
    : await openStage(values.short)
  const started = performance.now()
  let [steps, failed, seed] = [0, 0, from]
  for (; seed < from + count && failed < Number(values.most); seed++) {
    const outcome = await stage.run(seed)
    steps += outcome.steps
    if ((seed - from) % 1_000 === 999) write(`${seed - from + 1} seeds`)
    if (outcome.violation === null && values.seed === undefined) continue
    if (outcome.violation !== null) failed++
    write(formatOutcome(outcome))
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  write(`${seed - from} seeds, ${steps} steps, ${failed} failed, ${seconds} s`)
  await stage.close()
  process.exitCode = failed === 0 ? 0 : 1
}

function runPlanted(): void {
  const root = new URL('../..', import.meta.url).pathname
  const copy = mkdtempSync(join(tmpdir(), 'fatura-planted-'))
  for (const name of ['src', 'sandbox', 'test/sim', 'test/support', 'package.json', 'build', 'openapi.json'])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const tools of ['tools', 'test']) {
    mkdirSync(join(copy, tools), { recursive: true })
    symlinkSync(join(root, 'tools/node_modules'), join(copy, tools, 'node_modules'))
  }
  let found = 0
  const chosen = planted.filter(({ name }) => name.includes(values.only))
  for (const fault of chosen) {
    const output = runWith(copy, fault)
    const [, seeds, failed] = /^(\d+) seeds, \d+ steps, (\d+) failed/m.exec(output) ?? [null, 0, 'none']
    const [, first = output.slice(0, 120)] = /^(seed \d+: .{0,120})/m.exec(output) ?? []
    // A line that does not run shows nothing of the fault.
    const runs = failed !== 'none' && !/^seed \d+: (Reference|Syntax|Type)Error/.test(first)
    if (runs && failed !== '0') found++
    write(`${runs ? '' : 'DOES NOT RUN: '}${failed} of ${seeds} seeds: ${fault.name}. ${first}`)
  }
  rmSync(copy, { recursive: true, force: true })
  write(`${found} of ${chosen.length} planted faults found`)
  process.exitCode = found / chosen.length >= 0.95 ? 0 : 1
}

function runWith(copy: string, { file, from, to, isPostgres }: Planted): string {
  const path = join(copy, file)
  const before = readFileSync(path, 'utf8')
  if (before.split(from).length !== 2) throw new Error(`${file} does not hold this once: ${from}`)
  writeFileSync(
    path,
    before.replace(from, () => to),
  )
  const args = ['--from', values.from, '--seeds', values.seeds, '--most', values.most]
  if (isPostgres === true) args.push('--postgres')
  const { stdout, stderr } = spawnSync(process.execPath, [join(copy, 'test/sim/run.ts'), ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 30,
  })
  writeFileSync(path, before)
  return stdout + stderr
}
