export interface TurnLimits {
  /** How many of one key's are under way at once. */
  maxAtOnce: number
  /** How many more of one key's may wait, and for how long each. */
  maxWaiting: number
  maxWaitMs: number
}

interface Queue {
  underWay: number
  waiting: Set<(hasTurn: boolean) => void>
}

/** Who holds a turn gives it back by calling this, once. */
export type EndTurn = () => void

/** Lets a few of each key's through at once; the others wait in the order in which they came. */
export class Turns {
  private readonly queues = new Map<string, Queue>()
  private readonly limits: TurnLimits

  constructor(limits: TurnLimits) {
    this.limits = limits
  }

  /** Null when no turn came in time, or when too many wait already. */
  async take(key: string): Promise<EndTurn | null> {
    let queue = this.queues.get(key)
    if (queue === undefined) {
      queue = { underWay: 0, waiting: new Set() }
      this.queues.set(key, queue)
    }
    if (queue.underWay < this.limits.maxAtOnce) queue.underWay++
    else if (queue.waiting.size >= this.limits.maxWaiting || !(await this.wait(queue))) return null
    return () => this.end(key, queue)
  }

  private wait({ waiting }: Queue): Promise<boolean> {
    return new Promise(resolve => {
      const go = (hasTurn: boolean) => {
        clearTimeout(timer)
        waiting.delete(go)
        resolve(hasTurn)
      }
      const timer = setTimeout(go, this.limits.maxWaitMs, false)
      waiting.add(go)
    })
  }

  /** The turn goes to the next one; with nobody left, the key is forgotten. */
  private end(key: string, queue: Queue): void {
    const [next] = queue.waiting
    if (next !== undefined) next(true)
    else if (--queue.underWay === 0) this.queues.delete(key)
  }
}
