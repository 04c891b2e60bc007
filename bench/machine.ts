/** The machine in one line: figures mean nothing without it. */
import { cpus, totalmem } from 'node:os'
import { hasWrk } from './load/wrk.ts'

export function describeMachine(postgresVersion: string | null): string {
  const cores = cpus()
  const parts = [
    `${cores.length} cores (${cores[0]?.model.trim()})`,
    `${Math.round(totalmem() / 2 ** 30)} GB of memory`,
    `Node ${process.versions.node}`,
    `SQLite ${process.versions.sqlite}`,
    ...(postgresVersion === null ? [] : [`PostgreSQL ${postgresVersion}`]),
    `load by ${hasWrk() ? 'wrk' : 'autocannon'}`,
  ]
  return parts.join(', ')
}
