/** The store of a command that asks it something or changes something, and ends. */
import { isMissing, prepareStore } from '../../store/engines.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printWaiting } from '../terminal/progress.ts'

/** Made ready first, and closed at the end. One that is not there is made only with `create`, the flag of that name. */
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
  const store = await open(url, { onWait: printWaiting })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
