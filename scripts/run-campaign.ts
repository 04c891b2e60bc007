/**
 * Measures the promises one after the other, each alone on the machine, and writes docs/reliability.md's table: a row that was not
 * measured stays as it is, with its day. Files of test/campaign/ that belong to no promise come after them.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { type Promised, type PromiseId, promises, type Step } from './promises.ts'

type Run = (filesAtATime: number, args: readonly string[]) => boolean

const promiseIds = Object.keys(promises) as PromiseId[]
export const isPromise = (text: string): text is PromiseId => Object.hasOwn(promises, text)

const page = new URL('../docs/reliability.md', import.meta.url)
const [begin, end] = ['<!-- campaign:begin -->\n', '<!-- campaign:end -->']

/** What test/campaign/ measures without a promise. */
function findOthers(): string[] {
  const promised = new Set(Object.values(promises).flatMap(({ steps }) => steps.map(({ file }) => file)))
  return globSync('test/campaign/**/*.test.ts')
    .filter(file => !promised.has(file))
    .sort()
}

/** Whether all that were measured hold: these promises, or everything when none is given. */
export function runCampaign(given: readonly PromiseId[], run: Run): boolean {
  const chosen = given.length > 0 ? given : promiseIds
  const started = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'fatura-campaign-'))
  const file = join(folder, 'figures')
  process.env.CAMPAIGN_FIGURES = file
  writeFileSync(file, '')
  const measurable = chosen.filter(id => {
    const { needs }: Promised = promises[id]
    return needs === undefined || process.env[needs]
  })
  // A step may measure several promises.
  const steps = new Map<string, { step: Step; id: PromiseId }>()
  for (const id of measurable)
    for (const step of promises[id].steps as readonly Step[]) steps.set(nameOf(step), { step, id })
  const failed = new Set<string>()
  for (const [name, { step, id }] of steps) {
    const began = performance.now()
    const holds = measure(id, step, file, run)
    if (!holds) failed.add(name)
    process.stdout.write(`${name} ${holds ? 'passed' : 'FAILED'} after ${secondsSince(began)} s\n`)
  }
  const brokenOthers = (given.length > 0 ? [] : findOthers()).filter(other => {
    const holds = run(1, [other])
    process.stdout.write(`${other} ${holds ? 'passed' : 'FAILED'}\n`)
    return !holds
  })
  const found = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  rmSync(folder, { recursive: true })
  const figures = new Map<PromiseId, string>()
  const broken: PromiseId[] = []
  for (const id of measurable) {
    const own = found.map(line => JSON.parse(line)).filter(({ promise }) => promise === id)
    const figure = own.map(one => one.figure).join('; ')
    const holds =
      figure !== '' && !(promises[id].steps as readonly Step[]).some(step => failed.has(nameOf(step)))
    if (holds) figures.set(id, figure)
    else broken.push(id)
    process.stdout.write(`${id} ${holds ? 'holds' : 'FAILED'}: ${figure}\n`)
  }
  writeFileSync(page, withFigures(readFileSync(page, 'utf8'), figures))
  process.stdout.write(
    `${measurable.length} promises in ${secondsSince(started)} s, ${broken.length + brokenOthers.length} FAILED\n`,
  )
  return broken.length + brokenOthers.length === 0
}

const nameOf = ({ file, only }: Step) => `${file}${only === undefined ? '' : ` (${only})`}`

function measure(id: PromiseId, { file, only, args, readFigure }: Step, figures: string, run: Run): boolean {
  if (readFigure === undefined)
    return run(1, only === undefined ? [file] : [`--test-name-pattern=${only}`, file])
  const { stdout } = spawnSync(process.execPath, [file, ...(args ?? [])], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.stdout.write(stdout)
  const figure = readFigure(stdout)
  if (figure !== null) writeFileSync(figures, `${JSON.stringify({ promise: id, figure })}\n`, { flag: 'a' })
  return figure !== null
}

const secondsSince = (began: number) => ((performance.now() - began) / 1_000).toFixed(0)

/** The page with these figures in the table's rows. */
export function withFigures(text: string, figures: ReadonlyMap<PromiseId, string>): string {
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`docs/reliability.md has lost ${begin.trim()} or ${end}.`)
  const today = new Date().toISOString().slice(0, 10)
  const before = new Map(
    [...text.slice(from, to).matchAll(/^\| ([RS]\d+) \|.*\| (.*) \| (.*) \|.*\|$/gm)].map(
      ([, id = '', figure, day]) => [id, { figure, day }],
    ),
  )
  const rows = promiseIds.map(id => {
    const { promise, steps, needs }: Promised = promises[id]
    const measured = figures.get(id)
    const unmeasured = { figure: needs === undefined ? '' : `needs \`${needs}\``, day: '' }
    const { figure, day } =
      measured === undefined ? (before.get(id) ?? unmeasured) : { figure: measured, day: today }
    const files = [...new Set(steps.map(({ file }) => `\`${file}\``))].join(', ')
    return `| ${id} | ${promise} | ${figure} | ${day} | ${files} |\n`
  })
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.versions.node}`
  const provenance =
    figures.size === 0
      ? (/^`npm run test:campaign` on .*$/m.exec(text.slice(from, to))?.[0] ?? '')
      : `\`npm run test:campaign\` on ${machine}:`
  const table = `\n${provenance}\n\n| | Promise | Figure | Day | Test |\n|---|---|---|---|---|\n${rows.join('')}\n`
  return `${text.slice(0, from)}${begin}${table}${text.slice(to)}`
}
