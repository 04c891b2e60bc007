import { type Logger, pino } from 'pino'

/** One JSON object a line, on standard output. */
export function createLog(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime })
}
