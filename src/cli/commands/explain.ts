import {
  type Claim,
  type Document,
  missesToBelieve,
  noClaim,
  printedNumberOf,
} from '../../domain/document.ts'
import type { KnownDocument } from '../../domain/link/known.ts'
import type { Naming } from '../../domain/link/reference.ts'
import { writeAmount } from '../../domain/money.ts'
import { type Explained, type Explanation, explainInvoice } from '../../operations/explain.ts'
import { describeCharged } from '../../operations/reconcile/compare-amounts.ts'
import { documentPaths } from '../../sources/invoicexpress/document-source.ts'
import { knownSources } from '../../sources/known-sources.ts'
import type { BoundAccount, SetAside } from '../../store/connector-store.ts'
import type { JournalEntry } from '../../store/document-store.ts'
import { openOperatorStore, useStore } from '../../store/engines.ts'
import type { OperatorStore } from '../../store/store.ts'
import { readAccount } from '../../sync/accounts.ts'
import { formatReason } from '../../sync/read-state.ts'
import { isRefusedKind } from '../../sync/set-aside.ts'
import { linkRulesOf, settingGroups } from '../settings/connections.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { formatTable, printable } from '../terminal/table.ts'
import { findInvoiceIds } from './find-invoice-ids.ts'

const used = ['DATABASE_URL', ...settingGroups.link] as const

export const explainCommand = () =>
  new SettingsCommand('explain')
    .description(
      'Show everything that is known about one invoice: its data in both systems, its history, and the reason for the state of its document.',
    )
    .argument('<name>', "the invoice's ID or number, or its document's ID, printed number or ATCUD")
    .option('--json', 'print one JSON object per line, one for each customer that has such an invoice')
    .settings(used)
    .action(explain)

async function explain(name: string, options: { json?: true } & Options): Promise<void> {
  const settings = readSettings(options, used)
  const form = options.json === true ? 'json' : 'text'
  const opening = openOperatorStore(settings.DATABASE_URL)
  process.stdout.write(await useStore(opening, store => explainNamed(form, store, name, settings)))
}

export async function explainNamed(
  form: 'json' | 'text',
  store: OperatorStore,
  name: string,
  settings: Parameters<typeof linkRulesOf>[0],
): Promise<string> {
  const rules = linkRulesOf(settings, true)
  const accounts = await store.listBoundAccounts()
  const texts: string[] = []
  for (const id of await findInvoiceIds(store, name)) {
    const known = await explainInvoice(store, id, rules)
    if (known.found.length > 0 || known.deleted !== null || known.aside !== null)
      texts.push(form === 'json' ? writeLines(id, known, accounts) : writeText(id, known, accounts))
  }
  if (texts.length === 0)
    throw new CliError(
      `There is no invoice ${printable(name)} in the store. Check the ID and DATABASE_URL. "fatura status" shows how far the synchronization is.`,
    )
  return texts.join(form === 'json' ? '' : '\n')
}

function writeLines(
  id: string,
  { found, deleted, aside }: Explained,
  accounts: readonly BoundAccount[],
): string {
  const { customer_id, id: _, ...gone } = deleted ?? {}
  const objects = [
    ...found.map(each => ({ ...toObject(each), dashboards: dashboardsOf(accounts, each) })),
    ...(deleted === null ? [] : [{ invoice: { id, customer_id }, deleted: true, ...gone }]),
  ]
  return (objects.length === 0 ? [{ invoice: { id }, deleted: false }] : objects)
    .map(object => jsonLine({ ...object, set_aside: aside }))
    .join('')
}

function writeText(
  id: string,
  { found, deleted, aside }: Explained,
  accounts: readonly BoundAccount[],
): string {
  const texts = [
    ...found.map(explanation => describe(explanation, aside, accounts)),
    ...(deleted === null ? [] : [describeDeleted(deleted)]),
  ]
  if (texts.length === 0 && aside !== null) return `Invoice ${id} is not stored. ${describeAside(aside)}\n`
  const heading = texts.length > 1 ? `${texts.length} customers have an invoice of this ID.\n\n` : ''
  return heading + texts.join('\n')
}

/** Says why the stored invoice is not the payment platform's current version. */
function describeAside({ kind, reason, first_at, last_at }: SetAside): string {
  const why = isRefusedKind(kind) ? `Refused: ${formatReason(reason)}` : `Set aside: ${reason}`
  const since = `since ${new Date(first_at).toISOString()}, last seen ${new Date(last_at).toISOString()}`
  return printable(`${kind === 'outdated' ? 'The stored version is out of date. ' : ''}${why}; ${since}.`)
}

function describe(
  explanation: Explanation,
  aside: SetAside | null,
  accounts: readonly BoundAccount[],
): string {
  const { invoice, claim, documents, journal, next, observed_stamp } = explanation
  const { display_name, customer_email } = invoice
  const name = display_name === customer_email ? '' : ` (${display_name})`
  const heading = `Invoice ${invoice.id} of ${invoice.customer_id}${name}`
  return joinLines([
    printable(heading),
    '',
    compareSides(explanation),
    ...Object.values(dashboardsOf(accounts, explanation)),
    aside && describeAside(aside),
    claim === null
      ? 'The invoice was imported together with the state of its document. It was not read from Stripe.'
      : `Last read from Stripe: ${moment(observed_stamp)}. Its metadata there names: ${describeClaim(claim)}.`,
    '',
    ...explainState(explanation),
    ...describeReferences(explanation),
    ...(documents.length === 0
      ? ['Documents: none. No known document has one of these references or is named by the invoice.']
      : [
          'Documents:',
          ...documents.map((known, i) => describeDocument(known, explanation.names[i], explanation)),
        ]),
    '',
    ...describeJournal(journal),
    ...(next.length === 0 ? [] : ['', 'Next checks:', ...next.map(line => `  ${line}`)]),
  ])
}

function tiedDocument({ invoice, documents }: Explanation): Document | null {
  return documents.find(({ id }) => id === invoice.ix_id)?.document ?? null
}

/** Addresses of the dashboard pages of the invoice and its document. Null when the account or the document is unknown. */
function dashboardsOf(accounts: readonly BoundAccount[], explanation: Explanation) {
  const accountOf = (system: string) => accounts.find(each => each.system === system)?.account ?? null
  const billing = accountOf(knownSources.billing.system)
  const invoicing = accountOf(knownSources.documents.system)
  const document = tiedDocument(explanation)
  const mode = billing !== null && readAccount(billing).mode === 'test' ? 'test/' : ''
  const invoicePath = `${mode}invoices/${explanation.invoice.id}`
  // InvoiceXpress accounts are stored by name or by address.
  const base = invoicing?.includes('://') ? invoicing : `https://${invoicing}.app.invoicexpress.com`
  const isTied = invoicing !== null && document !== null
  return {
    stripe: billing === null ? null : `https://dashboard.stripe.com/${invoicePath}`,
    invoicexpress: isTied ? `${base}/${documentPaths[document.type]}/${document.id}` : null,
  }
}

function compareSides(explanation: Explanation): string {
  const { invoice, client_tax_id } = explanation
  const document = tiedDocument(explanation)
  const taxId = client_tax_id === undefined ? 'not read' : (client_tax_id ?? 'none')
  const rows = [
    ['', 'STRIPE', 'DOCUMENT'],
    ['id', invoice.id, String(invoice.ix_id ?? 'none')],
    ['number', invoice.number ?? 'none', (document && printedNumberOf(document)) ?? document?.number ?? ''],
    ...(document?.atcud ? [['atcud', '', document.atcud]] : []),
    ['status', invoice.status, invoice.ix_status ?? ''],
    [
      'total',
      `${writeAmount(invoice.total_cents, invoice.currency)} ${invoice.currency}`,
      document === null ? '' : describeCharged(document),
    ],
    ['day', invoice.issued_at.slice(0, 10), document?.date ?? ''],
    ['tax id', invoice.customer_tax_id ?? 'none', document === null ? '' : taxId],
    [
      'state',
      '',
      `${invoice.ix_sync_state}${invoice.ix_created_at === null ? '' : `, created ${invoice.ix_created_at}`}`,
    ],
  ]
  return `${formatRows(rows)}\n`
}

function describeClaim(claim: Claim): string {
  const facts = Object.entries(claim).filter(([, value]) => value !== null)
  return facts.length === 0
    ? 'nothing'
    : facts.map(([name, value]) => `${name} ${printable(String(value))}`).join(', ')
}

function explainState({ invoice: { ix_sync_state }, isStale, derived }: Explanation) {
  if (derived === null) return []
  const { fields, why, candidates } = derived
  return [
    isStale
      ? `The stored state is ${ix_sync_state}, but the state should now be ${fields.ix_sync_state}${fields.ix_id === null ? '' : ` with document ${fields.ix_id}, ${fields.ix_status}`}, because ${printable(why)}. The stored state is corrected when the invoice or the document is read again.`
      : `The document's state is ${ix_sync_state}, because ${printable(why)}.`,
    candidates.length === 0
      ? null
      : `Several documents fit: ${candidates.join(', ')}. The document in the invoice's metadata is used first, then the lowest ID that is not canceled.`,
    '',
  ]
}

function describeReferences({ references }: Explanation): string[] {
  const rows = references.map(({ template, texts }) => ['', template, texts.join(', ') || 'none'])
  return ['References that tie a document to this invoice, by template:', formatRows(rows)]
}

function describeDocument(
  known: KnownDocument,
  naming: Explanation['names'][number] | undefined,
  { invoice, claim }: Explanation,
): string {
  const { id, document, misses, observed_stamp } = known
  const ties = [
    id === invoice.ix_id && 'tied',
    id === (claim ?? noClaim).ix_id && 'named in the metadata at Stripe',
    ...(naming?.names ?? []).map(describeNaming),
  ].filter(Boolean)
  const seen =
    document === null
      ? 'never seen'
      : `${document.type} ${document.number ?? 'without a number'}, ${document.status}, ${document.total} ${document.currency ?? ''}`.trim()
  const missed =
    misses === 0
      ? ''
      : `, missed ${misses === 1 ? 'once' : `${misses} times`} in a row${misses < missesToBelieve ? '' : ': gone'}`
  const obstacle = naming?.obstacle ? `; ${naming.obstacle}` : ''
  return `  ${id}: ${printable(seen)} (${printable(ties.join(', '))}); last answer ${moment(observed_stamp)}${missed}${printable(obstacle)}`
}

function describeNaming({ field, kind, template }: Naming): string {
  const how = template === null ? `its plain ${kind === 'id' ? 'ID' : kind}` : template
  return field === 'reference' ? `refers to it by ${how}` : `its proprietary_uid names it by ${how}`
}

function describeJournal(journal: readonly JournalEntry[]): string[] {
  if (journal.length === 0)
    return ['Journal: empty. The invoice came from a list or an import, and no event about it has arrived.']
  const rows = journal.map(({ at, type, cause, outcome, detail, happened_at }) => [
    '',
    new Date(at).toISOString(),
    outcome,
    type,
    cause,
    `${detail}${happened_at === null ? '' : ` (happened ${new Date(happened_at).toISOString()})`}`,
  ])
  return ['Journal, newest first:', formatRows(rows)]
}

function formatRows(rows: readonly string[][]): string {
  const cells = rows.map(row => row.map(printable))
  return formatTable(cells, { width: Number.POSITIVE_INFINITY })
}

function describeDeleted(deleted: NonNullable<Explained['deleted']>): string {
  const { customer_id, id, observed_stamp, journal } = deleted
  return joinLines([
    `Invoice ${id} of ${customer_id} was a draft and is deleted. Last seen: ${moment(observed_stamp)}.`,
    'Its other data was removed. It cannot come back.',
    '',
    ...describeJournal(journal),
  ])
}

/** Joins lines. A text that ends in a newline, such as a table, stays as it is. Null adds no line. */
function joinLines(lines: readonly (string | null)[]): string {
  return lines.map(line => (line === null || line.endsWith('\n') ? line : `${line}\n`)).join('')
}

function moment(observedAt: number): string {
  return observedAt === 0 ? 'at an unknown time' : new Date(Math.floor(observedAt / 1000)).toISOString()
}

/** Returns the output for `--json`. The output leaves out the customer's e-mail address, even where the address serves as the name. */
function toObject({ invoice, isStale, ...rest }: Explanation) {
  const { customer_email, display_name, ...shown } = invoice
  const named = { ...shown, ...(display_name !== customer_email && { display_name }) }
  return { invoice: named, deleted: false, is_stale: isStale, ...rest }
}
