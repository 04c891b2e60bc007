import pg from 'pg'

/** Runs SQL as the server's superuser, on its own connection. */
export async function runSql(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client(url.endsWith('/') ? `${url}postgres` : url)
  await client.connect()
  try {
    return await client.query(sql)
  } finally {
    await client.end()
  }
}
