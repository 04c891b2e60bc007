import { styleText } from 'node:util'
import type { Command } from 'commander'
import { createReport, type Finding } from '../../checks/findings.ts'
import { type Options, SettingsCommand } from '../settings/read-settings.ts'
import { settingNames } from '../settings/settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { movingLine, printResult, printWaiting } from '../terminal/moving-line.ts'
import { createProgress } from '../terminal/progress.ts'
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
    .addHelpText(
      'after',
      `
For each check: ok, warn, FAIL or skip, what was found, and after an arrow what to do. Exit code 0 when nothing fails, else 1.
Without --repair it changes nothing. It shows no secret. On PostgreSQL it needs the address of a role that may write.`,
    )
    .action(runDoctor)
}

interface DoctorFlags extends Options {
  sample: string
  repair?: true
  deep?: true
  json?: true
}

async function runDoctor(options: DoctorFlags): Promise<void> {
  const { sample } = options
  if (!/^\d{1,4}$/.test(sample) || Number(sample) > sampleAtMost)
    throw new CliError(
      `--sample must be a whole number from 0 to ${sampleAtMost}, not '${printable(sample)}'.`,
    )
  const counts = { ok: 0, warn: 0, FAIL: 0, skip: 0 }
  const screen = createScreen(options.json === true)
  const report = createReport(screen.begin, finding => {
    counts[finding.result]++
    screen.print(finding)
  })
  const { runChecks } = await import('../../checks/run-checks.ts')
  const { repair = false, deep = false } = options
  const progress = createProgress('invoices')
  await runChecks(report, readChecked(report, options), {
    ...{ sample: Number(sample), repair, deep, onWait: printWaiting },
    onCounted: (invoices, of) =>
      progress.update('counted', invoices, of === null ? null : Math.min(1, invoices / of)),
  })
  screen.end(`${counts.ok} ok, ${counts.warn} warn, ${counts.FAIL} FAIL, ${counts.skip} skip.`)
  process.exitCode = counts.FAIL === 0 ? 0 : 1
  // A call to a system that does not answer would keep the process.
  setTimeout(() => process.exit(), 100).unref()
}

interface Screen {
  begin(check: string): void
  print(finding: Finding): void
  end(summary: string): void
}

const checkWidth = 24
const styles = { ok: 'green', warn: 'yellow', FAIL: 'red', skip: 'gray' } as const

/** On a terminal, a line below the findings shows the check under way. */
function createScreen(isJson: boolean): Screen {
  return {
    begin(check) {
      if (movingLine.canMove) movingLine.draw(`… ${printable(check)}`)
    },
    print: finding => printResult(isJson ? jsonLine(finding) : format(finding)),
    end: summary => printResult(isJson ? '' : `\n${summary}\n`),
  }
}

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
