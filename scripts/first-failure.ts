/** A reporter for `node --test --test-isolation=none` that prints nothing, and ends the run with the first test that fails. */
import type { TestEvent } from 'node:test/reporters'

export default async function* firstFailure(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type } of events) {
    if (type === 'test:fail') process.exit(1)
    yield ''
  }
}
