/**
 * A limited number of places for waiting requests, shared among owners. No owner can keep new owners out by taking
 * all places.
 */
export class Places<Holder> {
  private readonly max: number
  /** The holders of each owner, oldest first. */
  private readonly holders = new Map<string, Set<Holder>>()
  private taken = 0

  constructor(max: number) {
    this.max = max
  }

  get isEmpty(): boolean {
    return this.taken === 0
  }

  /**
   * Takes a place for the owner's holder. When all places are taken, the oldest holder of the owner with the most
   * places loses its place and is returned as `gaveWay`. A new owner gets no place if it would then have more places
   * than that owner. Otherwise both would push each other out for ever.
   */
  take(owner: string, holder: Holder): { isTaken: boolean; gaveWay: Holder | null } {
    let gaveWay: Holder | null = null
    if (this.taken >= this.max) {
      const greediest = this.findGreediest()
      if (greediest === null || this.countOf(greediest) <= this.countOf(owner) + 1)
        return { isTaken: false, gaveWay }
      gaveWay = this.oldestOf(greediest)
      if (gaveWay !== null) this.leave(greediest, gaveWay)
    }
    this.holders.set(owner, (this.holders.get(owner) ?? new Set()).add(holder))
    this.taken++
    return { isTaken: true, gaveWay }
  }

  /** Frees the holder's place. Does nothing when the holder has no place. */
  leave(owner: string, holder: Holder): void {
    const own = this.holders.get(owner)
    if (!own?.delete(holder)) return
    this.taken--
    if (own.size === 0) this.holders.delete(owner)
  }

  private countOf(owner: string): number {
    return this.holders.get(owner)?.size ?? 0
  }

  private oldestOf(owner: string): Holder | null {
    const [oldest = null] = this.holders.get(owner) ?? []
    return oldest
  }

  private findGreediest(): string | null {
    let greediest: string | null = null
    for (const owner of this.holders.keys())
      if (greediest === null || this.countOf(owner) > this.countOf(greediest)) greediest = owner
    return greediest
  }
}
