/** How often links may be asked for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSignInLimits } from '../../../src/http/sign-in/sign-in-limits.ts'

const hourMs = 3_600_000
const sent = { send: true }
const silent = { send: false }

const cases: [name: string, asked: [email: string, address: string, minute: number][], last: object][] = [
  ['the first', [['a@x.example', '192.0.2.1', 0]], sent],
  ['the third of an address', [0, 1, 2].map(minute => ['a@x.example', '192.0.2.1', minute]), sent],
  [
    'the fourth of an address is not sent',
    [0, 1, 2, 3].map(minute => ['a@x.example', `192.0.2.${minute}`, minute]),
    silent,
  ],
  [
    'an address gets a mail after another address used up its three',
    [
      ...[0, 1, 2, 3].map(minute => ['a@x.example', '192.0.2.1', minute] as [string, string, number]),
      ['b@x.example', '192.0.2.1', 4],
    ],
    sent,
  ],
  [
    'the fourth for an address gets a mail an hour after the first',
    [0, 1, 2, 60].map(minute => ['a@x.example', '192.0.2.1', minute]),
    sent,
  ],
  [
    'the twentieth of a source within an hour is accepted',
    Array.from({ length: 20 }, (_, i) => [`${i}@x.example`, '192.0.2.1', 0]),
    sent,
  ],
  [
    'the 21st of a source is refused until the hour is over',
    Array.from({ length: 21 }, (_, i) => [`${i}@x.example`, '192.0.2.1', i]),
    { refusedSeconds: 2_400 },
  ],
  [
    'all addresses of an IPv6 network count as one source',
    Array.from({ length: 21 }, (_, i) => [`${i}@x.example`, `2001:db8::${i + 1}`, 0]),
    { refusedSeconds: 3_600 },
  ],
  [
    'a second source is accepted after another used up its twenty',
    [
      ...Array.from({ length: 21 }, (_, i) => [`${i}@x.example`, '192.0.2.1', 0] as [string, string, number]),
      ['a@x.example', '192.0.2.2', 0],
    ],
    sent,
  ],
]

for (const [name, asked, last] of cases)
  test(`a request for a sign-in link: ${name}`, () => {
    const take = createSignInLimits()
    const turns = asked.map(([email, address, minute]) => take(email, address, hourMs + minute * 60_000))
    assert.deepEqual(turns.at(-1), last)
  })
