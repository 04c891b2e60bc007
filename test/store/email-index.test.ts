/** Customers are found by their address without reading every invoice. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { emailOf } from '../../src/store/sql/operator-reads.ts'

for (const [engine, expression] of Object.entries(emailOf))
  test(`the index of e-mail addresses on ${engine} has the same expression as the query`, () => {
    const file = new URL(`../../src/store/${engine}/migrations/0001.sql`, import.meta.url)
    const [, index] =
      /CREATE INDEX invoices_by_email ON \S+\s+\((.+)\);/.exec(readFileSync(file, 'utf8')) ?? []
    assert.equal(index, expression)
  })
