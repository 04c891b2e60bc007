/** A minor release of Node or of a dependency may change its private parts in silence: nothing here touches them. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../..')

/** A member that begins with an underscore, and what Node and pino do not document. */
const privateParts =
  /\?*\._[a-z]\w*|\{ _[a-z]\w*[^}]*\} = |\[['"]_[a-z]\w*['"]\]|pino\.symbols|\b(?:shouldKeepAlive|detachSocket|assignSocket|destroySoon|onIncoming|getCurrentBuffer|process\.binding)\b/g

test('the code uses no private API of Node or a dependency', () => {
  const files = globSync('{src,sandbox,scripts,bin}/**/*.{ts,tsx,js}', { cwd: root })
  assert.ok(files.length > 200)
  const found = files.flatMap(file => {
    const code = readFileSync(join(root, file), 'utf8')
    return [...code.matchAll(privateParts)].map(([part]) => `${file}: ${part}`)
  })
  assert.deepEqual(found, [])
})
