/** The claim of a document in the metadata of Stripe's invoice. Pure. */
import { isCalendarDay } from '../calendar.ts'
import { type Claim, claimedStates, documentTypes, noClaim } from '../document.ts'

/** The metadata's keys, by field of the claim. */
export type MetadataKeys = Record<keyof Claim, string>

export const usualKeys: MetadataKeys = {
  state: 'ix_state',
  ix_id: 'ix_id',
  ix_type: 'ix_type',
  created_at: 'ix_created_at',
  attempted_at: 'ix_attempted_at',
  error: 'ix_error',
}

/** Anybody can write metadata: an unreadable value counts as not recorded. */
export function mapClaim(metadata: Readonly<Record<string, string>> | null | undefined, keys: MetadataKeys) {
  const read = (name: keyof Claim): string | null => {
    const value = metadata?.[keys[name]]
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : null
  }
  if (!metadata) return noClaim
  return {
    state: oneOf(claimedStates, read('state')),
    ix_id: readId(read('ix_id')),
    ix_type: oneOf(documentTypes, read('ix_type')),
    created_at: readMoment(read('created_at')),
    attempted_at: readMoment(read('attempted_at')),
    error: read('error')?.replaceAll('\0', '').trim().toWellFormed() || null,
  }
}

function oneOf<T extends string>(values: readonly T[], text: string | null): T | null {
  return values.find(value => value === text) ?? null
}

function readId(text: string | null): number | null {
  const id = text !== null && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null
  return id !== null && Number.isSafeInteger(id) ? id : null
}

/** From ISO 8601 with a time zone, to UTC with milliseconds. A day that does not exist is refused. */
function readMoment(text: string | null): string | null {
  const [, day, rest] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d))$/.exec(text ?? '') ?? []
  if (day === undefined || rest === undefined || !isCalendarDay(day)) return null
  const moment = new Date(day + rest)
  if (Number.isNaN(moment.getTime())) return null
  const utc = moment.toISOString()
  // A time zone can lead out of the years of four digits.
  return /^\d{4}-/.test(utc) ? utc : null
}
