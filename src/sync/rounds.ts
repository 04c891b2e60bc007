/** The schedule of the connector, made from the table of its questions. Events never wait for lists of everything. */
import type { Stream, WriteStore } from '../store/store.ts'
import type { Swept } from './documents/document-round.ts'
import type { Applied } from './invoices/apply-answers.ts'
import type { Question } from './questions.ts'
import { type Clocks, createTimer, everyMs, leftSince, pauseAfter, type Step } from './schedule.ts'
import { newStream, readStreams } from './streams.ts'

/** Between two sweeps, however long one takes. */
const shortestPauseMs = 1_000

export type ReportStep = (step: string, done: Applied | Swept) => void

export interface RoundsOptions {
  store: Pick<WriteStore, 'listStreams'>
  clocks: Clocks
  reportStep: ReportStep
  /** Whether the whole account was listed. */
  isListed(): Promise<boolean>
}

/** One round a lane, each with its questions' steps. Rounds run at the same time. */
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

/** Its interval begins anew with each run, also with one that fails. */
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

/** A question whose interval a restart does not forget. */
type Remembered = Exclude<Question, { from: 'start' }>

/** Counts from the stream's last success. After the start, pauses run on a clock that nobody sets. */
class FromSuccess extends FromStart {
  private readonly name: string
  private readonly needsAccount: boolean
  /** The success that the timer counts from. A later one, of a list that another question brought to its end, counts as well. */
  private counted: number | null
  /** Of what is under way, by the monotonic clock. */
  private begunAt: number | null = null
  /** In a row. */
  private failures = 0

  constructor(question: Remembered, options: RoundsOptions, { name, cursor, succeeded_at }: Stream) {
    const left = leftSince(succeeded_at, question.everyMs, options.clocks)
    super(question, options, cursor === null ? left : 0)
    this.name = name
    this.needsAccount = question.needsAccount ?? false
    this.counted = succeeded_at
  }

  override async run(): Promise<void> {
    const { question, options, timer } = this
    if (this.needsAccount && !(await options.isListed())) return timer.restart(everyMs.backfill)
    const { cursor, succeeded_at } = await this.read()
    const isKnown = cursor !== null || succeeded_at === this.counted
    const left = isKnown ? 0 : leftSince(succeeded_at, question.everyMs, options.clocks)
    this.counted = succeeded_at
    if (left > 0) return this.restart(left)
    this.begunAt ??= options.clocks.elapsed()
    await this.askAndCount()
    const after = await this.read()
    this.counted = after.succeeded_at
    if (after.cursor !== null) return
    const age = question.from === 'beginning' ? options.clocks.elapsed() - this.begunAt : 0
    this.restart(Math.max(shortestPauseMs, question.everyMs - age))
  }

  /** A question that costs many calls is not asked every few seconds while it fails. */
  private async askAndCount(): Promise<void> {
    try {
      await this.ask()
      this.failures = 0
    } catch (error) {
      this.timer.restart(pauseAfter(++this.failures))
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
