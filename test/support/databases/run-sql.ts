import pg from 'pg'

/** Runs SQL as the server's superuser, on its own connection: one message after the other. Says what became of the last. */
export async function runSql(url: string, ...messages: [string, ...string[]]): Promise<pg.QueryResult> {
  const client = new pg.Client(url.endsWith('/') ? `${url}postgres` : url)
  await client.connect()
  try {
    let result: pg.QueryResult | undefined
    for (const sql of messages) result = await client.query(sql)
    return result as pg.QueryResult
  } finally {
    await client.end()
  }
}
