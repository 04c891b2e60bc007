import type { StoredEndpoint } from '../store/endpoint-store.ts'
import type { Report } from './findings.ts'

/** Reports nothing where there is no endpoint. */
export function checkEndpoints(report: Report, endpoints: readonly StoredEndpoint[]): void {
  for (const { id, state, attempts, error } of endpoints) {
    const check = report(`Endpoint ${id}`)
    if (state === 'disabled')
      check.fail(
        `disabled after ${attempts} attempts: it ${error ?? 'failed'}; changes wait`,
        `Repair the receiver, then: fatura endpoint replay ${id}`,
      )
    else if (state === 'paused') check.warn('paused; changes wait', `To go on: fatura endpoint replay ${id}`)
    else if (attempts > 0)
      check.warn(
        `${attempts} failed attempts: it ${error ?? 'failed'}; changes wait`,
        'It is tried again automatically while fatura sync runs. Look at the receiver.',
      )
    else check.ok('all changes delivered, or on their way')
  }
}
