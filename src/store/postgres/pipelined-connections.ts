/** Pipelined connections send queries without waiting for earlier answers. The answers arrive in the same order. */
import type pg from 'pg'

/** A pipeline holds one connection of the pool as long as any of its queries has no answer. */
interface Pipeline {
  client: Promise<pg.PoolClient>
  underway: number
  /** First failure of the connection. It also explains the failures of later queries. */
  failure: Error | undefined
}

/**
 * Sends each query over the pipeline with the fewest open queries. `checkOneMore` receives the number of all open queries, and may throw to
 * refuse another one.
 */
export function openPipelines(pool: pg.Pool, checkOneMore: (underway: number) => void = () => {}) {
  const pipelines: (Pipeline | null)[] = Array(pool.options.max).fill(null)
  let underway = 0

  const ask = async <Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<Row[]> => {
    checkOneMore(underway)
    underway++
    let index = 0
    for (const [other, pipeline] of pipelines.entries())
      if ((pipeline?.underway ?? 0) < (pipelines[index]?.underway ?? 0)) index = other
    const pipeline = pipelines[index] ?? { client: pool.connect(), underway: 0, failure: undefined }
    pipelines[index] = pipeline
    pipeline.underway++
    try {
      return (await (await pipeline.client).query(query)).rows
    } catch (error) {
      pipeline.failure ??= error as Error
      throw pipeline.failure
    } finally {
      pipeline.underway--
      underway--
      // After any failure, the next query takes another connection.
      if (pipelines[index] === pipeline && (pipeline.underway === 0 || pipeline.failure !== undefined))
        pipelines[index] = null
      if (pipeline.underway === 0)
        pipeline.client.then(
          client => client.release(pipeline.failure),
          () => {},
        )
    }
  }
  return Object.assign(ask, { underway: () => underway })
}
