/** Reports what full lists had to correct within a day, in `fatura status` and as a finding of `fatura doctor`. */
import { knownSources } from '../../sources/known-sources.ts'
import type { ConnectorReads, Recheck } from '../../store/connector-store.ts'
import type { Report } from './findings.ts'

const { billing, documents } = knownSources

/** Returns a title and a fact for each system. The list is empty until records were listed again for the first time. */
export function formatRechecks(rechecks: readonly Recheck[]): [title: string, fact: string][] {
  return rechecks.map(({ system, checked, corrected }) =>
    system === documents.system
      ? [
          'Documents listed again:',
          `${corrected} of ${checked} in 24 h had changed and were found only by reading all again`,
        ]
      : ['Invoices listed again:', `${corrected} of ${checked} in 24 h had changed without an event`],
  )
}

/** Reports nothing before any record was listed again. Only invoices can miss an event, because InvoiceXpress sends none. */
export async function checkCorrections(
  report: Report,
  store: Pick<ConnectorReads, 'readRechecks'>,
): Promise<void> {
  const check = report('Corrections')
  const found = await check.attempt('First correct the problems that the database checks show.', () =>
    store.readRechecks(Date.now()),
  )
  if (found === null || found.length === 0) return
  const detail = formatRechecks(found)
    .map(([title, fact]) => `${title} ${fact}`)
    .join('; ')
  const missed = found.find(({ system }) => system === billing.system)?.corrected ?? 0
  if (missed === 0) return check.ok(detail)
  check.warn(
    detail,
    'Events or webhooks were missed. The lists brought these invoices up to date. The log names them in "an invoice had changed without an event", and "fatura explain" shows each. If this continues, see the streams above.',
  )
}
