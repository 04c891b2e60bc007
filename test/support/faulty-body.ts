/** Bodies that a sandbox sends when it is told to fail. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { Serving } from '../../sandbox/serving.ts'

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

/** The effects of faults that are alike on every local service; `ask` requests a list. */
export const faultEffects = {
  hang: (ask: () => Promise<Response>) => assert.rejects(ask(), { name: 'TimeoutError' }),
  error_500: async (ask: () => Promise<Response>) => assert.equal((await ask()).status, 500),
  error_503: async (ask: () => Promise<Response>) => assert.equal((await ask()).status, 503),
  truncated: async (ask: () => Promise<Response>) => assert.rejects((await ask()).text()),
  garbled: async (ask: () => Promise<Response>) => assert.rejects((await ask()).json(), SyntaxError),
  slow_body: async (ask: () => Promise<Response>) => assertDrips(await ask()),
  reset: (ask: () => Promise<Response>) => assert.rejects(ask(), TypeError),
  async redirect(ask: () => Promise<Response>, sandbox: Serving) {
    const answer = await ask()
    const location = new URL(answer.headers.get('location') ?? '')
    assert.deepEqual([answer.status, location.hostname, location.search], [302, '127.0.0.1', ''])
    assert.notEqual(location.origin, sandbox.address)
    await (await fetch(location)).text()
    assert.equal(sandbox.requests.get('redirected'), 1)
  },
}
