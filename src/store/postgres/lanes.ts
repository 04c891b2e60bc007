/** Pipelined connections: questions follow one another without waiting for the answers, which come in the same order. */
import type pg from 'pg'

/** As long as anything is on its way, a lane holds one connection of the pool. */
interface Trip {
  client: Promise<pg.PoolClient>
  underway: number
  /** The first failure: later ones on the same connection follow from it. */
  failure: Error | undefined
}

export interface Ask {
  <Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<Row[]>
  underway(): number
}

/** A question takes the lane with the fewest on their way; `checkOneMore` gets the number of all, and may refuse by throwing. */
export function openLanes(pool: pg.Pool, checkOneMore: (underway: number) => void = () => {}): Ask {
  const lanes: (Trip | null)[] = Array(pool.options.max).fill(null)
  let underway = 0

  const ask = async <Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<Row[]> => {
    checkOneMore(underway)
    underway++
    let lane = 0
    for (const [place, trip] of lanes.entries())
      if ((trip?.underway ?? 0) < (lanes[lane]?.underway ?? 0)) lane = place
    const trip = lanes[lane] ?? { client: pool.connect(), underway: 0, failure: undefined }
    lanes[lane] = trip
    trip.underway++
    try {
      return (await (await trip.client).query(query)).rows
    } catch (error) {
      trip.failure ??= error as Error
      throw trip.failure
    } finally {
      trip.underway--
      underway--
      // After a failure, whatever it was, the next question takes another connection.
      if (lanes[lane] === trip && (trip.underway === 0 || trip.failure !== undefined)) lanes[lane] = null
      if (trip.underway === 0)
        trip.client.then(
          client => client.release(trip.failure),
          () => {},
        )
    }
  }
  return Object.assign(ask, { underway: () => underway })
}
