import { once } from 'node:events'
import type { Progress } from './progress.ts'

/** Standard output, no faster than it is read, and over no line of progress. */
export function createOutput({ end }: Pick<Progress, 'end'>): (bytes: string | Uint8Array) => Promise<void> {
  return async bytes => {
    end()
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
  }
}
