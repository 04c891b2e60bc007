/** On Citus: which node holds a customer's rows, as far as it was looked up. A wrong answer costs a way between nodes, and no more. */

/** How many customers are remembered, and for how long in milliseconds: a shard may move. */
const [customersAtMost, keepMs] = [50_000, 60_000]

export interface KnownPlaces {
  /** The node's group; undefined when it is not known yet: then it is looked up for the next time. */
  find(customerId: string): number | undefined
}

/** `lookUp` returns the group of the node that holds a customer; null when there are no groups. */
export function rememberPlaces(lookUp: (customerId: string) => Promise<number | null>): KnownPlaces {
  const groups = new Map<string, number>()
  let isSpread = true
  let since = performance.now()
  return {
    find(customerId) {
      if (!isSpread) return undefined
      if (groups.size >= customersAtMost || performance.now() - since > keepMs) {
        groups.clear()
        since = performance.now()
      }
      const group = groups.get(customerId)
      if (group === undefined)
        lookUp(customerId).then(
          found => {
            if (found === null) isSpread = false
            else groups.set(customerId, found)
          },
          () => {},
        )
      return group
    },
  }
}
