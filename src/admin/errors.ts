/** Errors of the admin port: in the API's form, with its codes where they fit. */
import { errorCodes } from '../errors.ts'

const adminErrors = {
  ...errorCodes,
  unsupported_media_type: { status: 415 },
  not_configured: { status: 503 },
} as const

export class AdminError extends Error {
  readonly code: keyof typeof adminErrors
  readonly headers: Readonly<Record<string, string>>

  constructor(code: keyof typeof adminErrors, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.code = code
    this.headers = headers
  }

  get status(): number {
    return adminErrors[this.code].status
  }

  write(requestId: string): string {
    return JSON.stringify({ error: { code: this.code, message: this.message, request_id: requestId } })
  }
}
