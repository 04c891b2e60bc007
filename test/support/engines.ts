/** Every engine a store can run on. A suite loops over them, so that one suite runs over all. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { migrateStore } from '../../src/store/open-store.ts'

export interface Engine {
  name: string
  /** The address of a new, empty, migrated store that goes away with the test. */
  createStore(t: TestContext): Promise<string>
}

const sqlite: Engine = {
  name: 'sqlite',
  async createStore(t) {
    const url = `sqlite:${join(await createFolder(t), 'fatura.db')}`
    await migrateStore(url)
    return url
  },
}

export const engines: readonly Engine[] = [sqlite]

/** A folder that goes away with the test. */
export async function createFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fatura-test-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}
