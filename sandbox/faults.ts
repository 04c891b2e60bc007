/** Faults of a local service. A fault applies to a route until it is cleared or for a number of requests. Faults can also be random. */
import { integer, pick, type Random } from './random.ts'

export const faultNames = [
  'hang',
  'too_many',
  'error_500',
  'error_503',
  'truncated',
  'garbled',
  'slow_body',
  'reset',
  'redirect',
  'huge',
  'wrong_type',
  'missing_id',
  'looping_page',
  'gateway_404',
] as const
export type Fault = (typeof faultNames)[number]

/** Faults of the local InvoiceXpress. Stripe has only the faults of `faultNames`. */
export const documentFaultNames = [
  ...faultNames,
  'error_in_200',
  'unauthorized',
  'never_ready',
  'not_found',
  'repeating_pages',
  'endless_pages',
] as const
export type DocumentFault = (typeof documentFaultNames)[number]

export const routeNames = [
  'list_invoices',
  'retrieve_invoice',
  'list_lines',
  'list_events',
  'retrieve_customer',
  'retrieve_tax_rate',
  'retrieve_account',
  'pdf',
] as const
export type RouteName = (typeof routeNames)[number]

export const documentRouteNames = [
  'ix_list',
  'ix_document',
  'ix_client',
  'ix_pdf',
  'ix_pdf_file',
  'ix_related',
  'ix_qr',
  'ix_qr_file',
  'ix_saft',
  'ix_saft_file',
] as const
export type DocumentRouteName = (typeof documentRouteNames)[number]

export interface FaultOptions {
  /** Number of requests that succeed before the fault begins. */
  after?: number
  /** Number of requests that fail. Without a number, the fault lasts until it is cleared. */
  times?: number
  /** Text of the Retry-After header: seconds, a date, or an invalid text. */
  retryAfter?: string
}

export interface Faults<Name extends string = Fault, Route extends string = RouteName> {
  /** Sets the fault of a route and replaces an earlier one. `*` applies to every route without its own fault. */
  set(route: Route | '*', fault: Name, options?: FaultOptions): void
  /** Makes a share of the requests fail. `share` is from 0 to 1. Each fault is drawn from `among`. */
  setChaos(share: number, among?: readonly Name[]): void
  clear(): void
}

export interface ActiveFault {
  fault: DocumentFault
  retryAfter: string | undefined
  /** Number of earlier requests that met this fault. For a random fault it is 0 or 1, at random. */
  hits: number
}

/**
 * The default random faults. They end at once, and every client can recognize them. A wrong 404 or a repeated page cannot be recognized, so
 * it is never random.
 */
export const randomFaults = [
  'too_many',
  'error_500',
  'error_503',
  'truncated',
  'garbled',
  'reset',
  'wrong_type',
  'missing_id',
] as const satisfies readonly Fault[]

/** The server calls `take` for each request. `take` returns the request's fault or null. */
export function createFaults<Name extends DocumentFault, Route extends string>(
  random: Random,
): Faults<Name, Route> & { take(route: string): ActiveFault | null } {
  const active = new Map<
    string,
    { fault: Name; spared: number; remaining: number; hits: number; retryAfter: string | undefined }
  >()
  let chaos: { share: number; among: readonly DocumentFault[] } = { share: 0, among: randomFaults }
  return {
    set(route, fault, { after = 0, times = Number.POSITIVE_INFINITY, retryAfter } = {}) {
      active.set(route, { fault, spared: after, remaining: times, hits: 0, retryAfter })
    },
    setChaos(share, among) {
      chaos = { share, among: among ?? randomFaults }
    },
    clear() {
      active.clear()
      chaos = { share: 0, among: randomFaults }
    },
    take(route) {
      const found = [active.get(route), active.get('*')].find(
        entry => entry !== undefined && entry.remaining > 0,
      )
      if (found !== undefined && found.spared-- <= 0) {
        found.remaining--
        return { fault: found.fault, retryAfter: found.retryAfter, hits: found.hits++ }
      }
      if (chaos.share === 0 || random() >= chaos.share) return null
      return { fault: pick(random, chaos.among), retryAfter: undefined, hits: integer(random, 0, 1) }
    },
  }
}
