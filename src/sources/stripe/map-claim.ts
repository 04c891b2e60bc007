/** Reads which document the metadata of a Stripe invoice names. Pure. */
import { readMoment } from '../../domain/calendar.ts'
import { type Claim, claimedStates, documentTypes, noClaim } from '../../domain/document.ts'

export type MetadataKeys = Record<keyof Claim, string>

export const defaultKeys: MetadataKeys = {
  state: 'ix_state',
  ix_id: 'ix_id',
  ix_type: 'ix_type',
  created_at: 'ix_created_at',
  attempted_at: 'ix_attempted_at',
  error: 'ix_error',
}

/** Anybody can write metadata, so an unreadable value counts as absent. */
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
    created_at: readUtc(read('created_at')),
    attempted_at: readUtc(read('attempted_at')),
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

function readUtc(text: string | null): string | null {
  const moment = readMoment(text ?? '')
  return moment === null ? null : new Date(moment).toISOString()
}
