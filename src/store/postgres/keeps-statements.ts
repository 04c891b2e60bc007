/** Whether sessions keep their prepared statements apart: behind a pooler in transaction mode they may not. */
import { randomUUID } from 'node:crypto'
import type { Pool, PoolClient } from 'pg'

const isThereAlready = '42P05'

/**
 * One name is prepared by two sessions. A pooler gives the second one the connection that the first one used last; if it does not
 * know of statements, the name is there already.
 */
export async function keepsStatements(pool: Pool): Promise<boolean> {
  const name = `fatura_${randomUUID().slice(0, 8)}`
  const sessions: PoolClient[] = []
  try {
    const first = await pool.connect()
    sessions.push(first)
    const second = await pool.connect()
    sessions.push(second)
    await first.query({ name, text: 'SELECT 1' })
    return await prepareToo(second, name)
  } finally {
    for (const session of sessions) session.release(true)
  }
}

/** Leaves nothing behind at a server's connection that others use after us. */
async function prepareToo(session: PoolClient, name: string): Promise<boolean> {
  await session.query('BEGIN')
  await session.query('SAVEPOINT before')
  try {
    await session.query({ name, text: 'SELECT 1' })
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== isThereAlready) throw error
    await session.query('ROLLBACK TO SAVEPOINT before')
    await session.query(`DEALLOCATE ${name}`)
    return false
  } finally {
    await session.query('COMMIT')
  }
}
