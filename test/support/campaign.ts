/** A campaign's size: bounded within `npm test`, whole with `npm run test:campaign`. */
export function campaign(bounded: number, full: number): number {
  return process.env.CAMPAIGN === 'on' ? full : bounded
}
