/** What lists of everything had to correct within a day, as `fatura status` shows it and as a finding of `fatura doctor`. */
import { knownSources } from '../../sources/known-sources.ts'
import type { ConnectorReads, Recheck } from '../../store/connector-store.ts'
import type { Report } from './findings.ts'

const { billing, documents } = knownSources

/** Facts with titles; none before anything was looked at again. */
export function formatRechecks(rechecks: readonly Recheck[]): [title: string, fact: string][] {
  return rechecks.map(({ system, checked, corrected }) =>
    system === documents.system
      ? [
          'Documents listed again:',
          `${corrected} of ${checked} in 24 h had changed, as only the sweep of all shows`,
        ]
      : ['Invoices listed again:', `${corrected} of ${checked} in 24 h had changed without an event`],
  )
}

/** Reports nothing before anything was listed again. Documents have no events: what a sweep finds was not missed. */
export async function checkCorrections(
  report: Report,
  store: Pick<ConnectorReads, 'readRechecks'>,
): Promise<void> {
  const check = report('Corrections')
  const found = await check.attempt('Look at the database first.', () => store.readRechecks(Date.now()))
  if (found === null || found.length === 0) return
  const detail = formatRechecks(found)
    .map(([title, fact]) => `${title} ${fact}`)
    .join('; ')
  const missed = found.find(({ system }) => system === billing.system)?.corrected ?? 0
  if (missed === 0) return check.ok(detail)
  check.warn(
    detail,
    'Events or webhooks were missed; the lists brought these invoices up to date. See the log for "an invoice had changed without an event", and fatura explain for each. If it goes on, look at the streams above.',
  )
}
