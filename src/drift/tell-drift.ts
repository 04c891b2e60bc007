/** What the comparisons found, for people: as `fatura status` shows it, and as a finding of `fatura doctor`. */
import { attempt, type Reporter } from '../doctor/findings.ts'
import type { ConnectorReads, Drift } from '../store/connector-store.ts'
import { type DriftEstimates, readDrift } from './estimate.ts'

/** Nothing before anything was compared. Each fact has a title. */
export function tellDrift({ '24h': day, '2h': hours }: DriftEstimates): [title: string, fact: string][] {
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
    ...(isWrong(day) ? [['Repaired:', tellRepaired(day)] as [string, string]] : []),
  ]
}

/** As in "0.069 %". */
function percentOf(ratio: number | null): string {
  return `${Number((100 * (ratio ?? 1)).toPrecision(2))} %`
}

function isWrong({ differing, missing }: Drift): boolean {
  return differing + missing > 0
}

function tellRepaired({ differing, missing, repaired, neighbours }: Drift): string {
  return `${repaired} of these ${differing + missing}, and ${neighbours} others near them`
}

/** Reports nothing unless something was compared: a store that is synchronized by cron never is. */
export async function checkDrift(report: Reporter, store: Pick<ConnectorReads, 'readDrift'>): Promise<void> {
  const check = 'Drift'
  const found = await attempt(report, check, 'Look at the database first.', () => readDrift(store))
  if (found === null) return
  const day = found['24h']
  const told = tellDrift(found).map(([, fact]) => fact)
  if (told.length === 0) return
  const detail = told.slice(0, 2).join('; ')
  const wrong = day.differing + day.missing
  if (wrong === 0) return report.ok(check, detail)
  const rest = `${detail}; repaired: ${tellRepaired(day)}`
  const next = 'See the log for "a stored invoice differs from its source", and fatura explain for each.'
  if (day.repaired < wrong) report.fail(check, rest, next)
  else report.warn(check, rest, `${next} If it goes on, events are missed: look at the streams above.`)
}
