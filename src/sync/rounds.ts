/** The schedule of the connector, made from the table of questions. Events never wait for full lists. */
import type { Stream, WriteStore } from '../store/store.ts'
import type { Swept } from './documents/document-round.ts'
import type { Applied } from './invoices/apply-answers.ts'
import type { Question } from './questions.ts'
import { type Clocks, createTimer, everyMs, pauseAfter, remainingSince, type Step } from './schedule.ts'
import { newStream, readStreams } from './streams.ts'

/** Minimum pause between two sweeps, even when a sweep takes longer than its interval. */
const shortestPauseMs = 1_000

export type ReportStep = (step: string, done: Applied | Swept) => void

export interface RoundsOptions {
  store: Pick<WriteStore, 'listStreams'>
  clocks: Clocks
  reportStep: ReportStep
  /** Whether all invoices of the account were listed. */
  isListed(): Promise<boolean>
}

/** Returns one round for each lane, with a step for each of the lane's questions. Rounds run at the same time. */
export async function createRounds(
  questions: readonly Question[],
  options: RoundsOptions,
): Promise<Step[][]> {
  const streams = await readStreams(options.store)
  const stepOf = (question: Question) =>
    question.from === 'start'
      ? new FromStart(question, options)
      : new FromSuccess(question, options, streamIn(streams, question.stream))
  const lanes = Map.groupBy(questions, ({ lane }) => lane)
  return [...lanes.values()].map(lane => lane.map(stepOf))
}

/** A step whose interval begins again with each run, even with a failed run. */
class FromStart implements Step {
  readonly timer: Step['timer']
  protected readonly question: Question
  protected readonly options: RoundsOptions
  private isFirst = true

  constructor(question: Question, options: RoundsOptions, firstMs = 0) {
    this.question = question
    this.options = options
    this.timer = createTimer(question.everyMs, options.clocks, firstMs)
  }

  run(): Promise<void> {
    this.timer.restart()
    return this.ask()
  }

  protected async ask(): Promise<void> {
    const { isFirst, question, options } = this
    this.isFirst = false
    const done = await question.ask(isFirst)
    if (done !== null) options.reportStep(question.step, done)
  }
}

/** A question whose interval survives a restart of the process. */
type Remembered = Exclude<Question, { from: 'start' }>

/** A step whose interval counts from the stream's last success. After the start, its pauses use a monotonic clock. */
class FromSuccess extends FromStart {
  private readonly name: string
  private readonly needsAccount: boolean
  /** Time of the success from which the timer counts. A later success counts as well when another question completed the list. */
  private counted: number | null
  /** Beginning of the unfinished sweep or list, by the monotonic clock. Null when none is unfinished. */
  private begunAt: number | null = null
  private failuresInRow = 0

  constructor(question: Remembered, options: RoundsOptions, { name, cursor, succeeded_at }: Stream) {
    const remainingMs = remainingSince(succeeded_at, question.everyMs, options.clocks)
    super(question, options, cursor === null ? remainingMs : 0)
    this.name = name
    this.needsAccount = question.needsAccount ?? false
    this.counted = succeeded_at
  }

  override async run(): Promise<void> {
    const { question, options, timer } = this
    if (this.needsAccount && !(await options.isListed())) return timer.restart(everyMs.backfill)
    const { cursor, succeeded_at } = await this.read()
    const isKnown = cursor !== null || succeeded_at === this.counted
    const remainingMs = isKnown ? 0 : remainingSince(succeeded_at, question.everyMs, options.clocks)
    this.counted = succeeded_at
    if (remainingMs > 0) return this.restart(remainingMs)
    this.begunAt ??= options.clocks.elapsed()
    await this.askAndCount()
    const after = await this.read()
    this.counted = after.succeeded_at
    if (after.cursor !== null) return
    const age = question.from === 'beginning' ? options.clocks.elapsed() - this.begunAt : 0
    this.restart(Math.max(shortestPauseMs, question.everyMs - age))
  }

  /** Asks the question. The pause grows with each failure in a row, because a question may cost many calls. */
  private async askAndCount(): Promise<void> {
    try {
      await this.ask()
      this.failuresInRow = 0
    } catch (error) {
      this.timer.restart(pauseAfter(++this.failuresInRow))
      throw error
    }
  }

  private async read(): Promise<Stream> {
    return streamIn(await readStreams(this.options.store), this.name)
  }

  private restart(pauseMs: number): void {
    this.begunAt = null
    this.timer.restart(pauseMs)
  }
}

function streamIn(streams: ReadonlyMap<string, Stream>, name: string): Stream {
  return streams.get(name) ?? newStream(name)
}
