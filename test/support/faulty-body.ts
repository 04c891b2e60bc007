/** Bodies that a sandbox sends when it is told to fail. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'

/** Asserts that the body comes, but so slowly that nobody waits for its end; and hangs up. */
export async function assertDrips(response: Response): Promise<void> {
  const size = Number(response.headers.get('content-length'))
  const began = performance.now()
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes >= 5) break
  }
  const perByte = (performance.now() - began) / bytes
  assert.ok(bytes >= 5 && bytes < size && perByte * size > 60_000, `${bytes} of ${size}, ${perByte} ms each`)
}

/** How many bytes come until the end. By the plain client, which is the quickest with many. */
export async function countBytes(url: string, headers: Record<string, string> = {}): Promise<number> {
  const [incoming] = (await once(get(url, { headers }), 'response')) as [IncomingMessage]
  let bytes = 0
  for await (const chunk of incoming) bytes += chunk.length
  return bytes
}
