/** A campaign's size: bounded within `npm test`, whole with `npm run test:campaign`. */
export function campaign<Size>(bounded: Size, full: Size): Size {
  return process.env.CAMPAIGN === 'on' ? full : bounded
}
