/** Bodies that a sandbox sends when it is told to fail. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import type { Serving } from '../../../sandbox/serving.ts'
import { stopClock, until } from '../worlds/stopped-clock.ts'

/** Asserts that the body comes a byte each 50 ms, so that nobody waits for its end; and hangs up. */
async function assertDrips(t: TestContext, { requests }: Serving, ask: Ask): Promise<void> {
  const clock = stopClock(t)
  const asked = () => requests.values().reduce((sum, count) => sum + count, 0)
  const before = asked()
  const answer = ask()
  await until(() => asked() > before)
  await clock.pass(50)
  const response = await answer
  const size = Number(response.headers.get('content-length'))
  assert.ok(size * 50 > 60_000, `${size}`)
  const reader = response.body?.getReader() ?? assert.fail()
  for (let byte = 0; byte < 5; byte++) {
    assert.equal((await reader.read()).value?.length, 1)
    await clock.pass(50)
  }
  await reader.cancel()
}

/** How many bytes come until the end. By the plain client, which is the quickest with many. */
export async function countBytes(url: string, headers: Record<string, string> = {}): Promise<number> {
  const [incoming] = (await once(get(url, { headers }), 'response')) as [IncomingMessage]
  let bytes = 0
  for await (const chunk of incoming) bytes += chunk.length
  return bytes
}

type Ask = () => Promise<Response>

/** The effects of faults that are alike on every local service; `ask` requests a list. */
export const faultEffects = {
  hang: (ask: Ask) => assert.rejects(ask(), { name: 'TimeoutError' }),
  error_500: async (ask: Ask) => assert.equal((await ask()).status, 500),
  error_503: async (ask: Ask) => assert.equal((await ask()).status, 503),
  truncated: async (ask: Ask) => assert.rejects((await ask()).text()),
  garbled: async (ask: Ask) => assert.rejects((await ask()).json(), SyntaxError),
  slow_body: (ask: Ask, sandbox: Serving, t: TestContext) => assertDrips(t, sandbox, ask),
  reset: (ask: Ask) => assert.rejects(ask(), TypeError),
  async redirect(ask: Ask, sandbox: Serving) {
    const answer = await ask()
    const location = new URL(answer.headers.get('location') ?? '')
    assert.deepEqual([answer.status, location.hostname, location.search], [302, '127.0.0.1', ''])
    assert.notEqual(location.origin, sandbox.address)
    await (await fetch(location)).text()
    assert.equal(sandbox.requests.get('redirected'), 1)
  },
}
