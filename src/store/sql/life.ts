/** The life of a store: what was given in a former one is not believed. */
import { randomBytes } from 'node:crypto'
import type { WriteStore } from '../store.ts'
import type { Db } from './db.ts'

export function lifeWrites(db: Db): Pick<WriteStore, 'renewLife'> {
  return {
    async renewLife() {
      await db.query('UPDATE fatura.freshness SET life = $1', [randomBytes(6).toString('hex')])
    },
  }
}
