/** Changes as the recipes of CONTRIBUTING.md and docs/recipes.md tell how to make them: what somebody who follows one types. */

import { readdirSync } from 'node:fs'
import { rowFilterNames, rowFilters } from '../../../src/store/sql/filters.ts'

export interface MadeUpChange {
  /** Where a text is put, before the one that stands there: `[file, place, text]`. */
  insertions: readonly (readonly [file: string, place: string, text: string])[]
  /** New files. */
  files: Readonly<Record<string, string>>
  /** Commands, in this order. */
  commands: readonly string[]
}

const migrations = readdirSync(new URL('../../../src/store/sqlite/migrations/', import.meta.url))
/** Behind the migrations that there are, such as `0002.sql`. */
const nextMigration = `${String(migrations.length + 1).padStart(4, '0')}.sql`
/** Types of the filters' parameters, as PostgreSQL's functions have them now. */
const filterTypes = rowFilterNames.map(name => rowFilters[name].type).join(', ')

/** By the beginnings of the recipes. */
export const madeUpChanges = {
  'A filter of the list': {
    insertions: [
      ['src/domain/list-query.ts', '  q?: string | undefined\n', '  currency?: string | undefined\n'],
      ['src/domain/list-query.ts', '  q: true,\n', '  currency: true,\n'],
      [
        'src/http/openapi/schemas.ts',
        '  q: text(\n',
        "  currency: text('The currency, three letters in lower case.', { examples: ['eur'] }),\n",
      ],
      ['src/http/read-filter.ts', '  q: text => (text.trim()', '  currency: currency => ({ currency }),\n'],
      ['src/store/sql/filters.ts', '  /** Every word must match.', '  currency?: string | undefined\n'],
      [
        'src/store/sql/filters.ts',
        '  issued_from: {\n',
        `  currency: {
    column: { sqlite: "summary ->> '$.currency'", postgres: "summary::json ->> 'currency'" },
    ...{ is: '=', parameter: 'p_currency', type: 'text' },
    counted: null,
  },
`,
      ],
      [
        'src/cli/commands/export-filter.ts',
        '    month: new Option(',
        "    currency: new Option('--currency <code>', 'only those in this currency, such as eur'),\n",
      ],
      [
        'test/support/checks/model.ts',
        '  date_from: {\n',
        `  currency: {
    matches: (invoice, value) => invoice.currency === value,
    valueOf: ({ currency }) => currency,
  },
`,
      ],
      ['test/http/generated-requests.test.ts', '  date_from: isCalendarDay,\n', '  currency: () => true,\n'],
      [
        'test/sdk/held-against-the-document.test.ts',
        "    date_from: '2026-01-01',\n",
        "    currency: 'eur',\n",
      ],
      ['docs/api.md', '| `q` | string | | Free text', '| `currency` | string | | The currency |\n'],
      ['docs/export.md', '| `--from 2026-01-01`', '| `--currency eur` | `currency` |\n'],
      ['README.md', 'search `q`', '`currency`, '],
    ],
    files: {
      [`src/store/sqlite/migrations/${nextMigration}`]: '-- A filter by currency.\n',
      [`src/store/postgres/migrations/${nextMigration}`]: `DROP FUNCTION IF EXISTS fatura.list_invoices(text, bigint, bigint, text[], ${filterTypes});
DROP FUNCTION IF EXISTS fatura.search_invoices(text, bigint, bigint, text[], ${filterTypes}, bytea[], bytea[], bytea[], bytea[], bigint);
DROP FUNCTION IF EXISTS fatura.list_counted(text, bigint, bigint, text[], ${filterTypes});
`,
      'test/http/currency.test.ts': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

for (const engine of engines)
  test(\`a list is filtered by currency on \${engine.name}\`, async t => {
    const records = ['eur', 'jpy', 'eur'].map((currency, i) => makeRecord({ id: \`in_\${i}\`, currency }))
    const service = await startService(t, engine, { records })
    const found = async (query: string) => (await service.list(query)).json.total
    assert.deepEqual([await found('?currency=eur'), await found('?currency=jpy&q=in_')], [2, 1])
  })
`,
    },
    commands: ['npm run functions', 'npm run tables', 'npm run openapi'],
  },
  'An export column': {
    insertions: [
      [
        'src/export/columns.ts',
        "  { name: 'atcud', kind: 'text'",
        "  { name: 'month', kind: 'text', read: ({ issued_at }) => issued_at.slice(0, 7) },\n",
      ],
    ],
    files: {},
    commands: [],
  },
  'An error code': {
    insertions: [
      [
        'src/domain/errors.ts',
        '  route_not_found: {',
        "  customer_frozen: { status: 403, meaning: 'The customer is frozen: nothing is shown of it.' },\n",
      ],
      ['scripts/docs-tables.ts', '  route_not_found: ', "  customer_frozen: 'Wait.',\n"],
      ['src/http/openapi/schemas.ts', '),\n}\n\nexport const getInvoiceSchema', ", 'customer_frozen'"],
      [
        'src/http/list-invoices.ts',
        'store.readSums(customerId)',
        "customerId === 'cus_frozen' ? refuseFrozen() : ",
      ],
      [
        'src/http/list-invoices.ts',
        'function refuseSearch(): ApiError {',
        `function refuseFrozen(): never {
  throw new ApiError('customer_frozen', 'This customer is frozen.')
}

`,
      ],
      [
        'test/sdk/held-against-the-document.test.ts',
        '  route_not_found: true,\n',
        '  customer_frozen: true,\n',
      ],
    ],
    files: {
      'test/http/frozen.test.ts': `import { test } from 'node:test'
import { engines } from '../support/databases/engines.ts'
import { assertError, startService } from '../support/worlds/service.ts'

for (const engine of engines)
  test(\`the summary of a frozen customer gets 403 on \${engine.name}\`, async t => {
    const service = await startService(t, engine)
    assertError(await service.get('/api/v1/client/cus_frozen/summary'), 403, 'customer_frozen')
  })
`,
    },
    commands: ['npm run openapi'],
  },
  'A recurring question': {
    insertions: [
      [
        'src/sources/stream-names.ts',
        '    /** Invoices that may still change. */\n',
        `    /** Invoices whose payment is disputed. */
    disputes: \`\${streamPrefix}:disputes\`,
`,
      ],
      ['src/sources/stream-names.ts', "  all: 'follows',\n", "  disputes: 'nothing',\n"],
      [
        'src/sync/invoices/connector.ts',
        "import { retrySetAside } from './retry-set-aside.ts'\n",
        "import { lookAtDisputes } from './look-at-disputes.ts'\n",
      ],
      [
        'src/sync/invoices/connector.ts',
        '    /** Applies the events since the last call.',
        '    lookAtDisputes: () => lookAtDisputes(context, refetch),\n',
      ],
      [
        'src/sync/questions.ts',
        "    {\n      step: 'retrySetAside',\n",
        `    {
      step: 'lookAtDisputes',
      stream: streams.disputes,
      everyMs: 24 * 60 * 60_000,
      from: 'end',
      lane: 'disputes',
      needsAccount: true,
      ask: () => connector.lookAtDisputes(),
    },
`,
      ],
      [
        'src/operations/doctor/check-connector.ts',
        "    unsettled: 'invoices that may change',\n",
        "    disputes: 'disputed invoices',\n",
      ],
      ['docs/sync.md', '| `stripe:relist` |', '| `stripe:disputes` | looks at disputes | 24 h |\n'],
    ],
    files: {
      'src/sync/invoices/look-at-disputes.ts': `/** Fetches the invoices again whose payment may be disputed. */
import type { Applied } from './apply-answers.ts'
import type { Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'

export function lookAtDisputes(context: SyncContext, refetch: Refetch): Promise<Applied> {
  const { store, streams, names } = context
  return streams.run(names.disputes, async () => {
    const applied = await refetch.fetchEach(await store.readUnsettled(null, 100, context.nextStamp()), null)
    await store.transaction(tx => tx.saveSuccess(names.disputes, Date.now()))
    return applied
  })
}
`,
      'test/sync/disputes.test.ts': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { invoiceQuestions } from '../../src/sync/questions.ts'
import { createRounds } from '../../src/sync/rounds.ts'
import { type Clocks, realClocks, runDue } from '../../src/sync/schedule.ts'
import { engines } from '../support/databases/engines.ts'
import { startRig } from '../support/worlds/sync.ts'

for (const engine of engines)
  test(\`disputes are read once a day, also after a restart, on \${engine.name}\`, async t => {
    const { connector, connect, store, reader } = await startRig(t, engine, { invoices: 10, lines: 1 })
    await connector.backfill()
    await connector.catchUp()
    const { synced_at } = await reader.readFreshness()
    let told = 0
    const dayMs = 24 * 60 * 60_000
    for (const days of [0, 0, 1]) {
      const again = await connect()
      const questions = invoiceQuestions(again).filter(({ step }) => step === 'lookAtDisputes')
      const clocks: Clocks = { ...realClocks, calendar: () => Date.now() + days * dayMs }
      const { isListed } = again
      const rounds = await createRounds(questions, { store, clocks, isListed, reportStep: () => told++ })
      await runDue(rounds.flat())
      await runDue(rounds.flat())
    }
    assert.equal(told, 2)
    assert.equal((await reader.readFreshness()).synced_at, synced_at)
  })
`,
    },
    commands: [],
  },
  'A setting': {
    insertions: [
      [
        'src/cli/settings/settings.ts',
        '  PUBLIC_URL: optional({\n',
        `  GREETING: {
    default: 'Olá',
    flag: '--greeting <text>',
    meaning: 'What a greeting begins with.',
    parse: text => (text.length <= 20 ? text : refuse('must be at most 20 characters')),
  },
`,
      ],
    ],
    files: {},
    commands: ['npm run tables'],
  },
  'A command': {
    insertions: [
      ['src/cli/main.ts', "  openapi: 'fatura openapi", "  greet: 'fatura greet --greeting Viva',\n"],
      [
        'test/cli/help.test.ts',
        "  ['openapi', []],\n",
        "  ['greet', ['--greeting', 'GREETING', '--json']],\n",
      ],
    ],
    files: {
      'src/cli/commands/greet.ts': `import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { jsonLine } from '../terminal/json-line.ts'

const used = ['GREETING'] as const

export const greetCommand = () =>
  new SettingsCommand('greet')
    .description('Greet.')
    .option('--json', 'one JSON object')
    .settings(used)
    .action(greet)

function greet(options: { json?: true } & Options): void {
  const { GREETING: greeting } = readSettings(options, used)
  process.stdout.write(options.json === true ? jsonLine({ greeting }) : \`\${greeting}!\\n\`)
}
`,
    },
    commands: ['npx fatura greet --greeting Viva'],
  },
} satisfies Record<string, MadeUpChange>
