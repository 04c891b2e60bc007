import { fileURLToPath } from 'node:url'

/** Starting takes half the time with it, and a suite of processes starts very often. */
export const compileCache = fileURLToPath(
  new URL('../../../node_modules/.cache/fatura-test', import.meta.url),
)

/** No file of a checkout is reached by a link: looking for links takes a fifteenth of a start. */
export const quickLoading = { NODE_PRESERVE_SYMLINKS: '1' }
