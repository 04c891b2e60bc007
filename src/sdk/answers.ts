/** Reads JSON answers. Keeps the last answer of each path with its ETag. */
import type { CallOptions, createSend } from './send.ts'

export interface Result<T> {
  /** The answer's data, frozen. While nothing changed, every call returns the same object. */
  data: T
  /** Time until which the records are known to follow their source. Null before the first synchronization. */
  syncedAt: Date | null
  /** The ETag changes when any of the customer's invoices changes. */
  etag: string | null
  requestId: string | null
}

interface Held {
  etag: string
  data: unknown
}

export class Answers {
  private readonly send: ReturnType<typeof createSend>
  private readonly max: number
  /**
   * The last answers by path. A poll sends the ETag of its path, so that the service can answer 304. The answer that
   * was read longest ago is dropped first.
   */
  private readonly held = new Map<string, Held>()

  constructor(send: ReturnType<typeof createSend>, max = 100) {
    this.send = send
    this.max = max
  }

  async poll<T>(path: string, call?: CallOptions): Promise<Result<T>> {
    const result = await this.read<T>(path, call, this.held.get(path))
    const { etag, data } = result
    this.held.delete(path)
    if (etag !== null) this.held.set(path, { etag, data })
    const [oldest = ''] = this.held.keys()
    if (this.held.size > this.max) this.held.delete(oldest)
    return result
  }

  read<T>(path: string, call?: CallOptions, held?: Held): Promise<Result<T>> {
    const condition = held && { 'if-none-match': held.etag }
    const readAnswer = async (answer: Response) => {
      const syncedAt = answer.headers.get('fatura-synced-at')
      return {
        data: (answer.status === 304 ? held?.data : JSON.parse(await answer.text(), freeze)) as T,
        syncedAt: syncedAt === null ? null : new Date(syncedAt),
        etag: answer.headers.get('etag'),
        requestId: answer.headers.get('request-id'),
      }
    }
    return this.send(path, { accept: 'application/json', ...condition }, readAnswer, call)
  }
}

const freeze = (_key: string, value: unknown) => Object.freeze(value)
