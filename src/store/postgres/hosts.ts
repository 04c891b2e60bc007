/** Addresses with several hosts, as libpq takes them for failover: to which of them a connection is opened. */
import pg from 'pg'
import type { HostFacts } from '../facts.ts'
import { StoreUnavailable } from '../store.ts'
import type { SessionAttrs } from './split-hosts.ts'

/** Once one host fits, the others have so long to show that they fit better, in milliseconds. */
const headStartMs = 300

/** Of two servers that both take writes, the one on the later timeline was promoted last. */
const stateQuery = `
  SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS "readOnly",
    CASE WHEN NOT pg_is_in_recovery()
      THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END AS timeline`

type IsFit = (is: NonNullable<HostFacts['is']>) => boolean

/** The API's own sessions are read-only everywhere: for them, what takes writes is the primary. */
const isFit = (wanted: SessionAttrs, isWriter: boolean): IsFit[] => {
  const isPrimary: IsFit = ({ standby, readOnly }) => !standby && !(isWriter && readOnly)
  const isStandby: IsFit = ({ standby }) => standby
  if (isWriter || wanted === 'read-write' || wanted === 'primary') return [isPrimary]
  if (wanted === 'any') return [() => true]
  return wanted === 'prefer-standby' ? [isStandby, () => true] : [isStandby]
}

export async function readHost(config: pg.ClientConfig): Promise<HostFacts & { failure: unknown }> {
  const client = new pg.Client(config).on('error', () => {})
  const at = `${client.host}:${client.port}`
  try {
    await client.connect()
    const { rows } = await client.query(stateQuery)
    return { at, is: rows[0], failure: null }
  } catch (failure) {
    return { at, is: null, failure: Object.assign(failure as Error, { triedAddress: at }) }
  } finally {
    client.end().catch(() => {})
  }
}

/** Chooses a host for each connection: the one that was chosen last, as long as none is on a later timeline. */
export function chooseHosts(configs: readonly pg.ClientConfig[], wanted: SessionAttrs, isWriter: boolean) {
  let last = 0

  return async () => {
    const states: (HostFacts['is'] | undefined)[] = configs.map(() => undefined)
    const failures: unknown[] = []
    const { promise: enough, resolve } = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | undefined
    const asked = configs.map(async (config, place) => {
      const { is, failure } = await readHost(config)
      states[place] = is
      if (failure !== null) failures.push(failure)
      if (find(states, true) !== null) timer ??= setTimeout(resolve, headStartMs)
    })
    await Promise.race([Promise.all(asked), enough])
    clearTimeout(timer)
    const found = find(states, false)
    const lack = isWriter ? 'takes writes' : `is ${wanted}`
    if (found === null) throw failures[0] ?? new StoreUnavailable(`None of the hosts in the address ${lack}.`)
    last = found
    const { host, port } = new pg.Client(configs[found])
    return { host, port }
  }

  /** `isFirst`: only by what is wanted most. */
  function find(states: readonly (HostFacts['is'] | undefined)[], isFirst: boolean): number | null {
    for (const fits of isFit(wanted, isWriter).slice(0, isFirst ? 1 : undefined)) {
      const fitting = states.flatMap((is, place) => (is && fits(is) ? [{ place, is }] : []))
      const newest = Math.max(...fitting.map(({ is }) => is.timeline ?? 0))
      const best = fitting.filter(({ is }) => (is.timeline ?? newest) === newest)
      const chosen = best.find(({ place }) => place === last) ?? best[0]
      if (chosen !== undefined) return chosen.place
    }
    return null
  }
}
