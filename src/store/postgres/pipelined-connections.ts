/** Pipelined connections: questions follow one another without waiting for the answers, which come in the same order. */
import type pg from 'pg'

/** Holds a connection of the pool for as long as anything is on its way. */
interface Pipeline {
  client: Promise<pg.PoolClient>
  underway: number
  /** The first failure: later ones on the same connection follow from it. */
  failure: Error | undefined
}

/** A question takes the pipeline with the fewest on their way; `checkOneMore` gets the number of all, and may refuse by throwing. */
export function openPipelines(pool: pg.Pool, checkOneMore: (underway: number) => void = () => {}) {
  const pipelines: (Pipeline | null)[] = Array(pool.options.max).fill(null)
  let underway = 0

  const ask = async <Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<Row[]> => {
    checkOneMore(underway)
    underway++
    let place = 0
    for (const [other, pipeline] of pipelines.entries())
      if ((pipeline?.underway ?? 0) < (pipelines[place]?.underway ?? 0)) place = other
    const pipeline = pipelines[place] ?? { client: pool.connect(), underway: 0, failure: undefined }
    pipelines[place] = pipeline
    pipeline.underway++
    try {
      return (await (await pipeline.client).query(query)).rows
    } catch (error) {
      pipeline.failure ??= error as Error
      throw pipeline.failure
    } finally {
      pipeline.underway--
      underway--
      // After a failure, whatever it was, the next question takes another connection.
      if (pipelines[place] === pipeline && (pipeline.underway === 0 || pipeline.failure !== undefined))
        pipelines[place] = null
      if (pipeline.underway === 0)
        pipeline.client.then(
          client => client.release(pipeline.failure),
          () => {},
        )
    }
  }
  return Object.assign(ask, { underway: () => underway })
}
