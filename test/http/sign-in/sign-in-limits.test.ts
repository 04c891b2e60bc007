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
    'another address after these',
    [
      ...[0, 1, 2, 3].map(minute => ['a@x.example', '192.0.2.1', minute] as [string, string, number]),
      ['b@x.example', '192.0.2.1', 4],
    ],
    sent,
  ],
  [
    'the fourth, an hour after the first',
    [0, 1, 2, 60].map(minute => ['a@x.example', '192.0.2.1', minute]),
    sent,
  ],
  [
    'the twentieth of a source',
    Array.from({ length: 20 }, (_, i) => [`${i}@x.example`, '192.0.2.1', 0]),
    sent,
  ],
  [
    'the 21st of a source is refused until its hour is over',
    Array.from({ length: 21 }, (_, i) => [`${i}@x.example`, '192.0.2.1', i]),
    { refusedSeconds: 2_400 },
  ],
  [
    'a network of IPv6 is one source',
    Array.from({ length: 21 }, (_, i) => [`${i}@x.example`, `2001:db8::${i + 1}`, 0]),
    { refusedSeconds: 3_600 },
  ],
  [
    'another source',
    [
      ...Array.from({ length: 21 }, (_, i) => [`${i}@x.example`, '192.0.2.1', 0] as [string, string, number]),
      ['a@x.example', '192.0.2.2', 0],
    ],
    sent,
  ],
]

for (const [name, asked, last] of cases)
  test(`a link is asked for: ${name}`, () => {
    const take = createSignInLimits()
    const turns = asked.map(([email, address, minute]) => take(email, address, hourMs + minute * 60_000))
    assert.deepEqual(turns.at(-1), last)
  })
