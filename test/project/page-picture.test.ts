/** docs/page.png shows the page as it is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashPage, readPictured } from '../../scripts/page-picture.ts'

test('docs/page.png is as new as the billing page', () => {
  assert.equal(
    readPictured(),
    hashPage(),
    'the page has changed: npm run picture, then look at docs/page.png',
  )
})
