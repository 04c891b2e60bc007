/** Errors of the local InvoiceXpress. */
import { SandboxError, type WriteError } from '../spoil.ts'

export const notFound = (what: string) => new SandboxError(404, `The requested ${what} could not be found.`)

const shapes: WriteError[] = [
  (_status, error) => ({ errors: { error } }),
  (_status, error) => ({ errors: [{ error }] }),
  (status, message) => ({ error: { code: status, message } }),
  (_status, reason) => ({ reason }),
]

/** Every shape that was seen, in turn: a client that knows only one fails. */
export function createErrorWriter(): WriteError {
  let turn = 0
  return (status, message) => (shapes[turn++ % shapes.length] as WriteError)(status, message)
}
