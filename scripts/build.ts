/**
 * Builds what browsers are served and the sources do not hold as such, into `build/`. `npm ci` runs it; nothing else of the
 * project needs it, and where it did not run, simpler pages are served.
 */
import { builtFolder } from '../src/http/web-files.ts'
import { buildPage } from './build-page.ts'
import { buildReference } from './build-reference.ts'

await buildPage(builtFolder)
await buildReference(builtFolder)
