/** The invoicing system's errors: one fact, told in whichever shape comes next. */
import type { WriteError } from '../spoil.ts'

/** An error that is sent with this status. */
export class IxError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export const notFound = (what: string) => new IxError(404, `The requested ${what} could not be found.`)

const shapes: WriteError[] = [
  (_status, error) => ({ errors: { error } }),
  (_status, error) => ({ errors: [{ error }] }),
  (status, message) => ({ error: { code: status, message } }),
  (_status, reason) => ({ reason }),
]

/** Every shape that was seen, in turn: a reader who knows only one is found out. */
export function createErrorWriter(): WriteError {
  let turn = 0
  return (status, message) => (shapes[turn++ % shapes.length] as WriteError)(status, message)
}
