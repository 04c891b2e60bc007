/** Everything that is served for browsers beside the API. */
import { locateFile } from '../package.ts'
import { loadPage } from './page-files.ts'
import { loadReference } from './reference/reference.ts'
import type { StaticFile } from './static-files.ts'

/** Where `scripts/build.ts` puts what it makes. */
export const builtFolder = locateFile('build/')

/** `folder` may be missing: then there is what needs no building. `embedOrigins` may show the billing page in a frame. */
export function loadWebFiles(
  apiDescription: Buffer,
  folder: URL = builtFolder,
  embedOrigins: readonly string[] = [],
): StaticFile[] {
  return [...loadPage(folder, embedOrigins), ...loadReference(apiDescription, folder)]
}
