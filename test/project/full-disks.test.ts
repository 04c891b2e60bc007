/** A run of the tests that fails on a full disk says which folder it is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeFullDisks } from '../../scripts/full-disks.ts'

test('the message about full disks names each folder without free space, and no other folder', () => {
  const megabytes: Record<string, number> = { '/tmp': 12, '/dev/shm': 9_000, '/work': 299 }
  const statfs = (folder: string) => {
    const bavail = megabytes[folder]
    if (bavail === undefined) throw new Error('ENOENT')
    return { bavail, bsize: 1024 * 1024 }
  }
  const lines = describeFullDisks(['/tmp', '/dev/shm', '/nowhere', '/work'], statfs)
  assert.deepEqual(
    lines.map(line => /The disk of (\S+) is full: (\d+) MB/.exec(line)?.slice(1)),
    [
      ['/tmp', '12'],
      ['/work', '299'],
    ],
  )
})
