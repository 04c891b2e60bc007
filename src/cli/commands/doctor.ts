import { styleText } from 'node:util'
import { describeKey } from '../../operations/doctor/check-stripe.ts'
import { createReport, type Finding, type Report } from '../../operations/doctor/findings.ts'
import type { Checked } from '../../operations/doctor/run-checks.ts'
import { isInvoiceXpressOwn } from '../../sources/invoicexpress/client.ts'
import { isStripesOwn } from '../../sources/stripe/client.ts'
import { invoiceXpressOf, linkRulesOf, providerOf, settingGroups, stripeOf } from '../settings/connections.ts'
import { findMisspelt, loadEnvFile } from '../settings/environment.ts'
import { readWholeFlag } from '../settings/parsers.ts'
import { isSet, type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { type Setting, settingNames } from '../settings/settings.ts'
import { leave } from '../start/signals.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createProgress, movingLine, printResult, printWaiting } from '../terminal/progress.ts'
import { formatTable, printable } from '../terminal/table.ts'

/** A larger sample would take long and load both systems. */
const maxSample = 1_000

export const doctorCommand = () =>
  new SettingsCommand('doctor')
    .description(
      'Check the settings, the database, the keys and their permissions, and the clocks. Compare a sample of the invoices with both systems.',
    )
    .option('--sample <count>', 'number of invoices to compare with both systems (0 compares none)', '10')
    .option('--repair', 'correct wrong totals and counters in the database')
    .option(
      '--deep',
      'also compare the indexes of a SQLite file with its tables, which takes several times as long',
    )
    .option('--json', 'print one JSON object per line')
    .settings(settingNames)
    .notes(`Each check prints ok, warn, FAIL or skip, and what it found. After an arrow it prints what to do. The exit code is 0 when no check fails, else 1.
Without --repair the command changes nothing. It prints no secrets. On PostgreSQL, DATABASE_URL must name a role that may write.`)
    .action(runDoctor)

async function runDoctor(options: Options): Promise<void> {
  const sample = readWholeFlag('--sample', String(options.sample), 0, maxSample)
  const counts = { ok: 0, warn: 0, FAIL: 0, skip: 0 }
  const isJson = options.json === true
  // On a terminal, the last line shows the running check.
  const begin = (check: string) => {
    if (movingLine.canMove) movingLine.draw(`… ${printable(check)}`)
  }
  const report = createReport(begin, finding => {
    counts[finding.result]++
    printResult(isJson ? jsonLine(finding) : format(finding))
  })
  const { runChecks } = await import('../../operations/doctor/run-checks.ts')
  const progress = createProgress('invoices')
  await runChecks(report, readChecked(report, options), {
    sample,
    repair: options.repair === true,
    deep: options.deep === true,
    onWait: printWaiting,
    onCounted: (invoices, of) =>
      progress.update('counted', invoices, of === null ? null : Math.min(1, invoices / of)),
  })
  const summary = `${counts.ok} ok, ${counts.warn} warn, ${counts.FAIL} FAIL, ${counts.skip} skip.`
  printResult(isJson ? '' : `\n${summary}\n`)
  process.exitCode = counts.FAIL === 0 ? 0 : 1
  leave()
}

/** Reads the settings as a service does at its start. Each wrong setting is its own finding. The correct settings share one finding. */
export function readChecked(report: Report, options: Options): Checked {
  const reported = new Set<string>()
  /** Returns null for a wrong value. Each message is reported once. */
  function read<T>(readAll: () => T, check = 'Settings'): T | null {
    try {
      return readAll()
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (!reported.has(error.message))
        report(check).fail(error.message.replace(/\.$/, ''), 'Correct the setting.')
      reported.add(error.message)
      return null
    }
  }
  loadEnvFile()
  for (const { name, nearest } of findMisspelt())
    report('Settings').warn(
      `${printable(name)} is not a setting of Fatura and is ignored`,
      `If you mean ${nearest}, rename it.`,
    )
  const given = settingNames.filter(name => isSet(name, options))
  const right = given.filter(name => read(() => readSettings(options, [name]), `Setting ${name}`) !== null)
  report('Settings').ok(right.length === 0 ? 'none is set' : `well-formed: ${right.join(', ')}`)

  const one = <K extends Setting>(name: K) => read(() => readSettings(options, [name])[name])
  const stripe = read(() => stripeOf(readSettings(options, settingGroups.stripe)))
  const invoiceXpress = read(() => invoiceXpressOf(readSettings(options, settingGroups.invoiceXpressFiles)))
  // The doctor checks only the form of the identity provider's settings. It sends no request to the provider.
  read(() => providerOf(readSettings(options, settingGroups.provider)))
  const hasWebhookSecret = one('STRIPE_WEBHOOK_SECRET') !== null
  if (stripe !== null)
    report('Stripe').ok(`connected, ${isStripesOwn(stripe.base) ? 'at Stripe' : 'at a sandbox'}`)
  else if (!given.includes('STRIPE_API_KEY'))
    report('Stripe').skip('not connected', 'Set STRIPE_API_KEY to synchronize and to download PDFs.')
  if (hasWebhookSecret) report('Stripe: webhook secret').ok('set, and of the right form')
  if (invoiceXpress !== null)
    report('InvoiceXpress').ok(
      `connected, ${isInvoiceXpressOwn(invoiceXpress.base) ? 'at InvoiceXpress' : 'at a sandbox'}`,
    )
  else if (!given.includes('INVOICEXPRESS_API_KEY'))
    report('InvoiceXpress').skip(
      'not connected',
      'Set INVOICEXPRESS_ACCOUNT and INVOICEXPRESS_API_KEY for certified documents.',
    )
  const linking = read(() => {
    const given = readSettings(options, [...settingGroups.link, 'LINK_METADATA_KEYS'])
    return { rules: linkRulesOf(given, invoiceXpress !== null), keys: given.LINK_METADATA_KEYS }
  })
  const checked = { stripe, invoiceXpress, hasWebhookSecret, linking }
  checkMix(report, checked)
  return { ...checked, url: one('DATABASE_URL'), readUrl: one('DATABASE_READ_URL') }
}

/** Warns about a live key that is sent to a sandbox, and about a real system beside a sandbox. */
function checkMix(report: Report, { stripe, invoiceXpress }: Omit<Checked, 'url' | 'readUrl'>): void {
  if (stripe === null) return
  const isReal = isStripesOwn(stripe.base)
  if (describeKey(stripe.apiKey).mode === 'live' && !isReal)
    report('Setting STRIPE_API_BASE').warn(
      'a live key is sent to an address that is not Stripe’s',
      'Remove STRIPE_API_BASE, or use a test key. Roll the live key if that address is not yours.',
    )
  if (invoiceXpress !== null && isReal !== isInvoiceXpressOwn(invoiceXpress.base))
    report('Settings').warn(
      'one of Stripe and InvoiceXpress is a sandbox and the other is not, so their records do not belong together',
      'Remove STRIPE_API_BASE or INVOICEXPRESS_API_BASE, or set both.',
    )
}

const checkWidth = 24
const styles = { ok: 'green', warn: 'yellow', FAIL: 'red', skip: 'gray' } as const

function format({ result, check, detail, next }: Finding): string {
  const rows = [[result, printable(check), printable(detail)]]
  if (next !== null) rows.push(['', '', `→ ${printable(next)}`])
  return formatTable(rows, {
    atLeast: [4, checkWidth],
    paint: (text, column) => (column === 0 ? styleText(styles[result], text) : text),
  })
}
