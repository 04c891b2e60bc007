/** The tables of the docs that follow from the code. In its page, each stands between two comments. */
import { fileVariable, type SettingDefinition, settingNames, settings } from '../src/cli/settings/settings.ts'
import { type ErrorCode, errorCodes } from '../src/domain/errors.ts'
import { invoiceColumns, lineColumns } from '../src/export/columns.ts'
import { indexColumns } from '../src/export/export-pdfs.ts'
import { describeBuild } from '../src/operations/metrics/build-info.ts'
import { startMetrics } from '../src/operations/metrics/metrics.ts'
import { createStoreMetrics } from '../src/operations/metrics/store-metrics.ts'
import { type Check, invoiceChecks, lineChecks, paymentChecks } from '../src/sync/import/check-record.ts'
import { writeCommands } from './commands-part.ts'
import { writeLogTable } from './log-messages.ts'
import { writeTable } from './write-table.ts'

const tables: Record<string, () => string | Promise<string>> = {
  settings: writeSettings,
  columns: writeColumns,
  commands: writeCommands,
  errors: writeErrors,
  metrics: writeMetrics,
  'log messages': writeLogTable,
  'fields of an import': () => writeFields(invoiceChecks),
  'fields of a line item': () => writeFields(lineChecks),
  'fields of a payment': () => writeFields(paymentChecks),
}

export const pagesWithTables = ['configuration', 'errors', 'admin', 'logs', 'import', 'export'].map(
  page => `docs/${page}.md`,
)

/** The page with its tables as they must be. */
export async function withTables(page: string): Promise<string> {
  let text = page
  for (const [name, write] of Object.entries(tables)) {
    const [begin, end] = [
      `<!-- table: ${name}, written by npm run tables -->\n\n`,
      '\n<!-- end of the table -->',
    ]
    const [before = '', rest] = text.split(begin)
    if (rest === undefined) continue
    const after = rest.slice(rest.indexOf(end))
    text = `${before}${begin}${await write()}${after}`
  }
  return text
}

function writeSettings(): string {
  const rows = settingNames.map(name => {
    const { default: value, flag, meaning }: SettingDefinition = settings[name]
    const variable = fileVariable(name)
    const file = variable === null ? '' : ` [File](#secrets-in-files): \`${variable}\`.`
    return [`\`${name}\``, `\`${value}\``, flag === undefined ? 'none' : `\`${flag}\``, `${meaning}${file}`]
  })
  return writeTable(['Setting', 'Default', 'Flag', 'Meaning'], rows)
}

const nextSteps: Record<ErrorCode, string> = {
  invalid_request: 'Correct the request.',
  invalid_parameter: 'Correct that parameter.',
  missing_token: 'Send the header.',
  invalid_token: 'Get a [new token](access.md).',
  insufficient_scope: 'Use a token for this customer.',
  route_not_found: 'Compare the path with `/api/v1/openapi.json`. A slash at the end counts.',
  invoice_not_found: 'Check both IDs.',
  document_not_found: 'Follow `downloads.ix` only when it is not null.',
  method_not_allowed: 'Use a method that the header `Allow` lists.',
  request_timeout: 'Try again.',
  document_not_issued: 'Wait until the document is issued.',
  not_payable: 'Read the invoice again. See [the payment page](api.md#payment-page).',
  cursor_expired: '[Begin again](api.md#changes).',
  payload_too_large: 'Send no body.',
  uri_too_long: 'Shorten the query.',
  rate_limited: 'Wait for `Retry-After` seconds. See [wrong tokens](access.md#unknown-tokens).',
  headers_too_large: 'Send fewer headers, often cookies.',
  internal: 'Report `request_id`. A read may be repeated.',
  upstream_failed: 'With `Retry-After`, try again then. Without it, ask the operator.',
  unavailable: 'Try again after `Retry-After`.',
  overloaded: 'Try again after `Retry-After`, with growing pauses.',
  document_not_ready: 'Try again after `Retry-After`.',
  upstream_timeout: 'Try again after `Retry-After`.',
}

function writeErrors(): string {
  const rows = Object.entries(errorCodes).map(([code, { status, meaning }]) => {
    return [`\`${code}\``, String(status), meaning, nextSteps[code as ErrorCode]]
  })
  return writeTable(['Code', 'Status', 'Meaning', 'What to do'], rows)
}

function writeColumns(): string {
  const tables = { Invoices: invoiceColumns, '`--lines`': lineColumns, '`index.csv`': indexColumns }
  const rows = Object.entries(tables).map(([kind, columns]) => {
    return [kind, columns.map(({ name }) => `\`${name}\``).join(', ')]
  })
  return writeTable(['Rows', 'Columns, in order'], rows)
}

function writeFields(checks: Readonly<Record<string, Check>>): string {
  const rows = Object.entries(checks).map(([name, { allowed, nullable, optional }]) => {
    return [`\`${name}\``, nullable || optional ? 'no' : 'yes', allowed]
  })
  return writeTable(['Field', 'Required', 'Must be'], rows)
}

/** Each metric with the commands that have it; `up` has all. Without the metrics of Node and of the process. */
async function writeMetrics(): Promise<string> {
  const noStore = () => Promise.reject(new Error('there is no store here'))
  const storeMetrics = (isOperator: boolean) =>
    createStoreMetrics({ openStore: noStore, isOperator, hasDocuments: true, onProblem: () => {} })
  const build = describeBuild('1.0.0', 'sqlite')
  const sources = {
    serve: [
      build,
      startMetrics({ serves: { readConnections: async () => [] }, isMain: false }),
      storeMetrics(false),
    ],
    sync: [build, startMetrics({ serves: null, isMain: false }), storeMetrics(true)],
  }
  const rows = new Map<string, { type: string; help: string; commands: string[] }>()
  for (const [command, all] of Object.entries(sources))
    for (const { name, type, help } of (await Promise.all(all.map(metrics => metrics.read()))).flat()) {
      const row = rows.get(name) ?? { type: String(type), help, commands: [] }
      row.commands.push(`\`${command}\``)
      rows.set(name, row)
    }
  return writeTable(
    ['Metric', 'Type', 'Of', 'Meaning'],
    [...rows].map(([name, { type, help, commands }]) => [`\`${name}\``, type, commands.join(', '), help]),
  )
}
