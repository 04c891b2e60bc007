/** Faults of a local service: by route, until cleared or a number of times; or at random. */
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

/** Faults of the local InvoiceXpress. Stripe was never seen to have the last ones. */
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
  /** Requests that it leaves alone first. */
  after?: number
  /** Requests that it spoils; until it is cleared, when not given. */
  times?: number
  /** The header's text as it is sent: seconds, a date, or nonsense. */
  retryAfter?: string
}

export interface Faults<Name extends string = Fault, Route extends string = RouteName> {
  /** One fault a route: a new one takes the old one's place. `*` is every route that has none of its own. */
  set(route: Route | '*', fault: Name, options?: FaultOptions): void
  /** Spoils a share of the requests, from 0 to 1, by one of these at random. */
  setChaos(share: number, among?: readonly Name[]): void
  /** Removes all faults, and the random ones. */
  clear(): void
}

export interface ActiveFault {
  fault: DocumentFault
  retryAfter: string | undefined
  /** The number of requests it has spoilt before. */
  turn: number
}

/**
 * Random faults, by default: those that end at once and that every client can recognize. A false 404 or a page that comes
 * twice cannot be recognized, so they are never random.
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

/** `take` is for the server: it returns the fault of this request, if any. */
export function createFaults<Name extends DocumentFault, Route extends string>(
  random: Random,
): Faults<Name, Route> & { take(route: string): ActiveFault | null } {
  const active = new Map<
    string,
    { fault: Name; spared: number; left: number; turn: number; retryAfter: string | undefined }
  >()
  let chaos: { share: number; among: readonly DocumentFault[] } = { share: 0, among: randomFaults }
  return {
    set(route, fault, { after = 0, times = Number.POSITIVE_INFINITY, retryAfter } = {}) {
      active.set(route, { fault, spared: after, left: times, turn: 0, retryAfter })
    },
    setChaos(share, among) {
      chaos = { share, among: among ?? randomFaults }
    },
    clear() {
      active.clear()
      chaos = { share: 0, among: randomFaults }
    },
    take(route) {
      const found = [active.get(route), active.get('*')].find(entry => entry !== undefined && entry.left > 0)
      if (found !== undefined && found.spared-- <= 0) {
        found.left--
        return { fault: found.fault, retryAfter: found.retryAfter, turn: found.turn++ }
      }
      if (chaos.share === 0 || random() >= chaos.share) return null
      return { fault: pick(random, chaos.among), retryAfter: undefined, turn: integer(random, 0, 1) }
    },
  }
}
