/** Whose records the store holds, which process brings them in, and what did not fit. */
import type { OperatorStore } from '../store/store.ts'
import { advice, formatHeld } from '../sync/deletion-guard.ts'
import { type Accounts, compareAccounts, formatAccount } from '../sync/pins.ts'
import { formatRefused, type Refused, readState } from '../sync/read-state.ts'
import { attempt, type Reporter } from './findings.ts'

export async function checkConnector(report: Reporter, store: OperatorStore): Promise<void> {
  const state = await attempt(report, 'Connector', 'Look at the database first.', () => readState(store))
  if (state === null) return
  const { lease, setAside, refused, held } = state
  report.ok('Connector', `${lease.holder ?? 'no process'} synchronizes this store`)
  const told = formatHeld(held)
  if (told !== null)
    report.fail(
      'Deletion guard',
      `holds back changes that look wrong: ${told}`,
      `${advice[0]?.toUpperCase()}${advice.slice(1)}.`,
    )
  const [newest] = setAside.newest
  if (newest !== undefined)
    report.warn(
      'Set aside',
      `${setAside.count} records are set aside; the newest is ${newest.system} ${newest.kind} ${newest.id}: ${newest.reason}`,
      'They are tried again automatically. See fatura status. If they stay, correct them in the other system, or report a bug; those that wait need all nodes of the database.',
    )
  const tell = (kind: Refused['kind']) => refused.filter(each => each.kind === kind).map(formatRefused)
  const [outdated, unstored] = [tell('outdated'), tell('refused')]
  if (outdated.length > 0)
    report.fail(
      'Out of date',
      `invoices are shown as they were before, because what they are now is refused; ${outdated.join('; ')}`,
      'Look at them at Stripe. A status that is not known may be known to a newer version of Fatura.',
    )
  if (unstored.length > 0)
    report.warn(
      'Refused',
      `invoices are not stored; ${unstored.join('; ')}`,
      'Look at them at Stripe. Only invoices of customers are shown; a status that is not known may be known to a newer version of Fatura.',
    )
}

/** Asks as `fatura sync` does at its start. */
export async function checkAccounts(
  report: Reporter,
  store: OperatorStore,
  accounts: Accounts,
): Promise<void> {
  const compared = await attempt(report, 'Accounts', 'See the findings about Stripe above.', () =>
    compareAccounts(store, accounts),
  )
  for (const { source, pinned, found, verdict } of compared ?? []) {
    const check = `Account of ${source.system}`
    if (verdict === 'other')
      report.fail(
        check,
        `the settings lead to ${formatAccount(source, found)}, and the store holds ${pinned === null ? 'invoices that are not there' : `what came from ${formatAccount(source, pinned)}`}`,
        "Use that account's key, or another store. If this is on purpose: fatura account change.",
      )
    else if (pinned === null)
      report.ok(check, `${formatAccount(source, found)}; the first fatura sync stores it`)
    else report.ok(check, `${formatAccount(source, found)}, the same as in the store`)
  }
}
