/** The measured drift, as `fatura status` shows it and as a finding of `fatura doctor`. */
import { type DriftEstimates, readDrift } from '../metrics/drift-estimate.ts'
import type { ConnectorReads, Drift } from '../store/connector-store.ts'
import type { Report } from './findings.ts'

/** Facts with titles; none before anything was compared. */
export function formatDrift({ '24h': day, '2h': hours }: DriftEstimates): [title: string, fact: string][] {
  if (day.compared + day.listed === 0) return []
  return [
    [
      'Compared with the sources:',
      `${day.differing} of ${day.compared} invoices differed in 24 h, so at most ${percentOf(day.ratio_at_most)} of all differ (95 % confidence); ${hours.differing} of ${hours.compared} in the last 2 h: at most ${percentOf(hours.ratio_at_most)}`,
    ],
    [
      'Looked for in the store:',
      `${day.missing} of ${day.listed} invoices of the source were missing in 24 h`,
    ],
    ...(day.differing + day.missing > 0 ? [['Repaired:', formatRepaired(day)] as [string, string]] : []),
  ]
}

function percentOf(ratio: number | null): string {
  return `${Number((100 * (ratio ?? 1)).toPrecision(2))} %`
}

function formatRepaired({ differing, missing, repaired, neighbours }: Drift): string {
  return `${repaired} of these ${differing + missing}, and ${neighbours} others near them`
}

/** Reports nothing before anything was compared: a store that is synchronized by cron never is. */
export async function checkDrift(report: Report, store: Pick<ConnectorReads, 'readDrift'>): Promise<void> {
  const check = report('Drift')
  const found = await check.attempt('Look at the database first.', () => readDrift(store))
  if (found === null) return
  const facts = formatDrift(found).map(([, fact]) => fact)
  if (facts.length === 0) return
  const day = found['24h']
  const detail = facts.slice(0, 2).join('; ')
  const wrong = day.differing + day.missing
  if (wrong === 0) return check.ok(detail)
  const repaired = `${detail}; repaired: ${formatRepaired(day)}`
  const next = 'See the log for "a stored invoice differs from its source", and fatura explain for each.'
  if (day.repaired < wrong) check.fail(repaired, next)
  else check.warn(repaired, `${next} If it goes on, events are missed: look at the streams above.`)
}
