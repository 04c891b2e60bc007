/** The store of a short command. */
import { isMissing, prepareStore } from '../../store/engines.ts'
import { useStore } from '../../store/use-store.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printWaiting } from '../terminal/progress.ts'

/** Prepares it, and closes it at the end. A missing one is created only with the flag `--create`. */
export async function withStore<Store extends { close(): Promise<void> }, T>(
  options: Options & { create?: true },
  open: (url: string, wait: { onWait: typeof printWaiting }) => Promise<Store>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  const isNew = isMissing(url)
  if (isNew && options.create !== true)
    throw new CliError(
      `There is no store at ${url}. Run the command where the store is, or set DATABASE_URL. "fatura migrate" makes a new one, and so does --create of "token create" and "key add".`,
    )
  await prepareStore(url, { onWait: printWaiting })
  if (isNew) process.stderr.write(`There was no store: made ${url}.\n`)
  return useStore(open(url, { onWait: printWaiting }), work)
}
