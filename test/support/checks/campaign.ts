/** Tests at the size of a campaign, and the figures that they reach. */
import { appendFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import type { PromiseId } from '../../../scripts/promises.ts'

/** A campaign's size: bounded within `npm test`, whole with `npm run test:campaign`. */
export function campaign<Size>(bounded: Size, full: Size): Size {
  return process.env.CAMPAIGN === 'on' ? full : bounded
}

/** Reports the figure of a promise; `npm run test:campaign` writes it into docs/reliability.md. */
export function reportFigure(t: TestContext, promise: PromiseId, figure: string): void {
  t.diagnostic(`${promise}: ${figure}`)
  const file = process.env.CAMPAIGN_FIGURES
  if (file) appendFileSync(file, `${JSON.stringify({ promise, figure })}\n`)
}
