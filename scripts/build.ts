/**
 * Builds what browsers are served and the sources do not hold as such, into `build/`, and Stripe's library in one file. `npm ci`
 * runs it; nothing else of the project needs it: where it did not run, simpler pages are served, and starts take longer.
 */
import { builtFolder } from '../src/http/web-files.ts'
import { buildPage } from './build-page.ts'
import { buildReference } from './build-reference.ts'
import { buildStripe } from './build-stripe.ts'

await buildPage(builtFolder)
await buildReference(builtFolder)
await buildStripe(builtFolder)
