import { Command, Option } from 'commander'
import { readBatches, readChecked, readUnlinked } from '../../checks/read-pairs.ts'
import {
  type Difference,
  describeUnlinked,
  differenceKinds,
  findDifferences,
} from '../../checks/reconcile.ts'
import { openOperatorStore } from '../../store/engines.ts'
import { type OperatorStore, StoreError, type Stream } from '../../store/store.ts'
import { documentStreams } from '../../stream-names.ts'
import { linkRulesOf, linkSettings } from '../settings/connections.ts'
import { addSettings, type Options, readSettings } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createOutput } from '../terminal/output.ts'
import { createProgress, type Progress } from '../terminal/progress.ts'
import { formatParagraph } from '../terminal/table.ts'
import { knownSources } from './known-sources.ts'
import { createWriter, type Format, formats, summarize } from './reconcile-output.ts'
import { readScope, type Scope } from './reconcile-scope.ts'

const documentNames = documentStreams(knownSources.documents)
const used = ['DATABASE_URL', 'TIME_ZONE', ...linkSettings] as const

export function reconcileCommand(): Command {
  return addSettings(
    new Command('reconcile')
      .description(
        "List where the payment platform's side of an invoice and its document differ. Reads the store only.",
      )
      .option('--customer <id>', 'only the invoices of this customer, cus_…')
      .option('--month <month>', 'only those issued in this month, YYYY-MM')
      .option('--from <day>', 'only those issued on this day or later, YYYY-MM-DD')
      .option('--to <day>', 'only those issued on this day or earlier')
      .option('--timezone <name>', 'the time zone of these days, such as Europe/Lisbon (default: TIME_ZONE)')
      .option('--unlinked', 'also list documents in force that no invoice is tied to')
      .addOption(
        new Option(
          '--format <format>',
          'table for people; csv; csv-pt for Excel in Portuguese; json is one object a line',
        )
          .choices(formats)
          .default('table'),
      )
      .option('--json', 'the same as --format json'),
    used,
  )
    .addHelpText(
      'after',
      `
Kinds: ${differenceKinds.join(', ')}.
The last two appear only with --unlinked.
Exit code: 0 when there is no difference, 1 when there is one, 2 when it could not be checked.
In csv and csv-pt, a cell that a spreadsheet would take for a formula begins with an apostrophe.`,
    )
    .action(reconcile)
}

async function reconcile(options: { format: Format; json?: true; unlinked?: true } & Options): Promise<void> {
  try {
    const settings = readSettings(options, used)
    const scope = readScope(options, settings.TIME_ZONE)
    const rules = linkRulesOf(settings, true)
    const store = await openOperatorStore(settings.DATABASE_URL)
    const progress = createProgress('invoices')
    try {
      await refuseUnread(store, scope, progress)
      const format = options.json === true ? 'json' : options.format
      const writer = createWriter(format, scope.zone, createOutput(progress))
      const counts = new Map<string, number>()
      const report = async (difference: Difference) => {
        counts.set(difference.kind, (counts.get(difference.kind) ?? 0) + 1)
        await writer.add(difference)
      }
      const now = Date.now()
      let checked = 0
      for await (const { linked, known, claimants } of readChecked(store, scope, rules)) {
        progress.update('checked', ++checked)
        for (const difference of findDifferences(linked, known, rules, knownSources.billing, now, claimants))
          await report(difference)
      }
      let unlinked = 0
      for await (const document of readUnlinked(store, scope, rules)) {
        unlinked++
        if (options.unlinked) await report(describeUnlinked(document, rules))
      }
      await writer.end()
      print(progress, summarize(counts, checked))
      if (unlinked > 0 && !options.unlinked)
        print(
          progress,
          `Also, ${unlinked} ${unlinked === 1 ? 'document in force is' : 'documents in force are'} tied to no invoice: --unlinked lists ${unlinked === 1 ? 'it' : 'them'}.`,
        )
      process.exitCode = counts.size === 0 ? 0 : 1
    } finally {
      progress.end()
      await store.close()
    }
  } catch (error) {
    if (error instanceof CliError || error instanceof StoreError)
      throw new CliError(error.message, { exitCode: 2, cause: error })
    // A fault of ours is no difference either.
    process.exitCode = 2
    throw error
  }
}

const day = 24 * 60 * 60 * 1000

/** Before the documents were read to their end, every paid invoice would seem to have none. */
async function refuseUnread(store: OperatorStore, scope: Scope, progress: Progress): Promise<void> {
  if (scope.customer !== null && (await store.readLinked(null, 1, scope.customer)).length === 0)
    throw new CliError(
      `There is no invoice of ${scope.customer}. Check the ID; fatura status shows whether its invoices were synchronized.`,
    )
  const streams = new Map((await store.listStreams()).map(stream => [stream.name, stream]))
  if (succeededAt(streams, documentNames.all) === null) {
    let looked = 0
    for await (const batch of readBatches(store, scope)) {
      looked += batch.length
      progress.update('looked at', looked)
      if (batch.some(({ claim }) => claim !== null))
        throw new CliError(
          `The documents were never read completely, so nothing can be compared. Run fatura sync with ${knownSources.documents.name} connected until fatura status shows a success of ${documentNames.all}.`,
        )
    }
    return
  }
  const last = succeededAt(streams, documentNames.open)
  if (last === null || Date.now() - last > day)
    print(
      progress,
      `Warning: documents were last read ${last === null ? 'at an unknown time' : new Date(last).toISOString()}; later changes are not seen. Is fatura sync running?`,
    )
}

function print(progress: Progress, text: string): void {
  progress.print(formatParagraph(text).trimEnd())
}

function succeededAt(streams: ReadonlyMap<string, Stream>, name: string): number | null {
  return streams.get(name)?.succeeded_at ?? null
}
