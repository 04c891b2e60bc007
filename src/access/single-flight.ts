/** Calls with the same key at the same time share one promise. */
export class SingleFlight<T> {
  private readonly asking = new Map<string, Promise<T>>()

  ask(question: string, find: () => Promise<T>): Promise<T> {
    let answer = this.asking.get(question)
    if (answer === undefined) {
      answer = find().finally(() => this.asking.delete(question))
      this.asking.set(question, answer)
    }
    return answer
  }
}
