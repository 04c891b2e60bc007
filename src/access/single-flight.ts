/** Those who ask the same at once wait for one answer. */
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
