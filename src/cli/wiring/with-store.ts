/** The store of a command that asks it something or changes something, and ends. */
import { prepareStore } from '../../store/engines.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { sayWaiting } from '../terminal/progress.ts'

/** Made ready first, and closed at the end. */
export async function withStore<Store extends { close(): Promise<void> }, T>(
  options: Options,
  open: (url: string, wait: { onWait: typeof sayWaiting }) => Promise<Store>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  await prepareStore(url, { onWait: sayWaiting })
  const store = await open(url, { onWait: sayWaiting })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
