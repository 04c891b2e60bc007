/**
 * Keeps the keys of an identity provider in memory, and reads them again by a timer. When a reading fails, the known
 * keys stay valid. A key that the provider removed is valid until the next successful reading.
 */
import { ApiError } from '../../domain/errors.ts'
import { importKeys, type VerificationKey } from './import-keys.ts'

export type KeySet = ReturnType<typeof openKeySet>

const defaultTimes = {
  reloadMs: 5 * 60_000,
  retryMs: 60_000,
  /** Time after a failure until the keys are read again, while no key is known. */
  firstRetryMs: 5_000,
  /** Minimum time between two readings that unknown key ids cause. */
  unknownMs: 60_000,
  timeoutMs: 3_000,
}
export type KeySetTimes = typeof defaultTimes

export function openKeySet(url: string, onProblem: (error: Error) => void, times = defaultTimes) {
  const closing = new AbortController()
  let keys: readonly VerificationKey[] = []
  let reading: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  let askedForUnknownMs = Number.NEGATIVE_INFINITY

  async function readNow(): Promise<void> {
    clearTimeout(timer)
    let nextMs = times.reloadMs
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(times.timeoutMs)])
      keys = await importKeys(await fetchKeySet(url, signal))
    } catch (error) {
      nextMs = keys.length === 0 ? times.firstRetryMs : times.retryMs
      if (!closing.signal.aborted) onProblem(error as Error)
    }
    if (!closing.signal.aborted) timer = setTimeout(read, nextMs).unref()
  }

  function read(): Promise<void> {
    reading ??= readNow().finally(() => {
      reading = null
    })
    return reading
  }

  read()
  return {
    /** Null when no key or more than one key matches. */
    async find(kid: string | undefined, alg: string): Promise<VerificationKey | null> {
      const known = pickKey(keys, kid, alg)
      if (known !== null) return known
      // At the start, waits for the first reading. Later, an unknown key id causes a reading at most once per
      // `unknownMs`.
      if (keys.length > 0 && performance.now() - askedForUnknownMs >= times.unknownMs) {
        askedForUnknownMs = performance.now()
        await read()
      } else await reading
      if (keys.length === 0) throw unreadable(times.firstRetryMs)
      return pickKey(keys, kid, alg)
    },
    holds: ({ thumbprint, kid, alg }: VerificationKey) =>
      keys.some(key => key.thumbprint === thumbprint && key.kid === kid && key.alg === alg),
    close() {
      closing.abort()
      clearTimeout(timer)
    },
  }
}

function pickKey(
  keys: readonly VerificationKey[],
  kid: string | undefined,
  alg: string,
): VerificationKey | null {
  const fitting = keys.filter(key => key.alg === alg && (kid === undefined || key.kid === kid))
  return (fitting.length === 1 && fitting[0]) || null
}

function unreadable(retryMs: number): ApiError {
  const message = 'The keys of the identity provider cannot be read; try again shortly.'
  return new ApiError('unavailable', message, { retryAfter: Math.ceil(retryMs / 1000) })
}

const maxBytes = 256 * 1024

/**
 * Fetches the key set until the signal aborts, and reads at most `maxBytes`. Errors give the reason, but never the URL.
 */
async function fetchKeySet(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'error',
    signal,
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the answer has status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    // Leaving the loop cancels the rest of the body.
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
