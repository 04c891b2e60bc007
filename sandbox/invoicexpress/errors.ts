/** Errors of the local InvoiceXpress. */
import { SandboxError, type WriteError } from '../spoil.ts'

export const notFound = (what: string) => new SandboxError(404, `The requested ${what} could not be found.`)

const shapes: WriteError[] = [
  (_status, error) => ({ errors: { error } }),
  (_status, error) => ({ errors: [{ error }] }),
  (status, message) => ({ error: { code: status, message } }),
  (_status, reason) => ({ reason }),
]

/** InvoiceXpress has several shapes of errors. The sandbox uses them in turn, so that a client has to understand all of them. */
export function createErrorWriter(): WriteError {
  let written = 0
  return (status, message) => (shapes[written++ % shapes.length] as WriteError)(status, message)
}
