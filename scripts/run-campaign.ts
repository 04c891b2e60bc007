/**
 * Measures the promises one after the other, each alone on the machine, and writes docs/reliability.md's table: a row that was not
 * measured stays as it is, with its day.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { type Promised, type PromiseId, promises, type Step } from './promises.ts'

type Run = (filesAtATime: number, args: readonly string[]) => boolean

export const promiseIds = Object.keys(promises) as PromiseId[]
export const isPromise = (text: string): text is PromiseId => Object.hasOwn(promises, text)

const page = new URL('../docs/reliability.md', import.meta.url)
const [begin, end] = ['<!-- campaign:begin -->\n', '<!-- campaign:end -->']

/** Whether all that were measured hold. */
export function runCampaign(chosen: readonly PromiseId[], run: Run): boolean {
  const started = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'fatura-campaign-'))
  const file = join(folder, 'figures')
  process.env.CAMPAIGN_FIGURES = file
  const failed: PromiseId[] = []
  const figures = new Map<PromiseId, string>()
  for (const id of chosen) {
    const { needs, steps }: Promised = promises[id]
    if (needs !== undefined && !process.env[needs]) continue
    writeFileSync(file, '')
    const began = performance.now()
    const holds = steps.map(step => measure(id, step, file, run)).every(Boolean)
    const figure = readFigures(file, id)
    process.stdout.write(`${id} ${holds ? 'holds' : 'FAILED'} after ${secondsSince(began)} s: ${figure}\n`)
    if (holds && figure !== '') figures.set(id, figure)
    else failed.push(id)
  }
  rmSync(folder, { recursive: true })
  writeFileSync(page, withFigures(readFileSync(page, 'utf8'), figures))
  const outcome = failed.length === 0 ? 'all hold' : `${failed.join(', ')} FAILED`
  process.stdout.write(`${chosen.length} promises in ${secondsSince(started)} s: ${outcome}\n`)
  return failed.length === 0
}

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

/** A file may measure several promises. */
function readFigures(file: string, id: PromiseId): string {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  const found = lines.filter(line => line !== '').map(line => JSON.parse(line))
  return found
    .filter(({ promise }) => promise === id)
    .map(({ figure }) => figure)
    .join('; ')
}

const secondsSince = (began: number) => ((performance.now() - began) / 1_000).toFixed(0)

/** The page with these figures in the table's rows. */
export function withFigures(text: string, figures: ReadonlyMap<PromiseId, string>): string {
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`docs/reliability.md has lost ${begin.trim()} or ${end}.`)
  const today = new Date().toISOString().slice(0, 10)
  const before = new Map(
    [...text.slice(from, to).matchAll(/^\| (R\d+) \|.*\| (.*) \| (.*) \|.*\|$/gm)].map(
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
