import { styleText } from 'node:util'
import type { Command } from 'commander'
import { createReport, type Finding } from '../../checks/findings.ts'
import { readWholeFlag } from '../settings/parsers.ts'
import { type Options, SettingsCommand } from '../settings/read-settings.ts'
import { settingNames } from '../settings/settings.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createProgress, movingLine, printResult, printWaiting } from '../terminal/progress.ts'
import { formatTable, printable } from '../terminal/table.ts'
import { readChecked } from './doctor-settings.ts'

/** More would take long, and load both systems. */
const sampleAtMost = 1_000

export function doctorCommand(): Command {
  return new SettingsCommand('doctor')
    .description(
      'Check settings, database, keys and their permissions, clocks, and a sample of the invoices against both systems.',
    )
    .option('--sample <count>', 'number of invoices to compare with both systems; 0 for none', '10')
    .option('--repair', 'replace totals and counters that are wrong')
    .option('--deep', "check a SQLite file's indexes against its tables, too: takes several times as long")
    .option('--json', 'one JSON object a line')
    .settings(settingNames)
    .notes(`For each check: ok, warn, FAIL or skip, what was found, and after an arrow what to do. Exit code 0 when nothing fails, else 1.
Without --repair it changes nothing. It shows no secret. On PostgreSQL it needs the address of a role that may write.`)
    .action(runDoctor)
}

interface DoctorFlags extends Options {
  sample: string
  repair?: true
  deep?: true
  json?: true
}

async function runDoctor(options: DoctorFlags): Promise<void> {
  const sample = readWholeFlag('--sample', options.sample, 0, sampleAtMost)
  const counts = { ok: 0, warn: 0, FAIL: 0, skip: 0 }
  const isJson = options.json === true
  // On a terminal, a line below the findings shows the check under way.
  const begin = (check: string) => {
    if (movingLine.canMove) movingLine.draw(`… ${printable(check)}`)
  }
  const report = createReport(begin, finding => {
    counts[finding.result]++
    printResult(isJson ? jsonLine(finding) : format(finding))
  })
  const { runChecks } = await import('../../checks/run-checks.ts')
  const { repair = false, deep = false } = options
  const progress = createProgress('invoices')
  await runChecks(report, readChecked(report, options), {
    ...{ sample, repair, deep, onWait: printWaiting },
    onCounted: (invoices, of) =>
      progress.update('counted', invoices, of === null ? null : Math.min(1, invoices / of)),
  })
  const summary = `${counts.ok} ok, ${counts.warn} warn, ${counts.FAIL} FAIL, ${counts.skip} skip.`
  printResult(isJson ? '' : `\n${summary}\n`)
  process.exitCode = counts.FAIL === 0 ? 0 : 1
  // A call to a system that does not answer would keep the process.
  setTimeout(() => process.exit(), 100).unref()
}

const checkWidth = 24
const styles = { ok: 'green', warn: 'yellow', FAIL: 'red', skip: 'gray' } as const

function format({ result, check, detail, next }: Finding): string {
  const rows = [
    [result, check, detail],
    ['', '', next === null ? '' : `→ ${next}`],
  ].map(row => row.map(printable))
  return formatTable(next === null ? rows.slice(0, 1) : rows, {
    atLeast: [4, checkWidth],
    paint: (text, column) => (column === 0 ? styleText(styles[result], text) : text),
  })
}
