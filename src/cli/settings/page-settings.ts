/** Settings of the page. settings.ts includes this table. */
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { isTimeZone } from '../../domain/calendar.ts'
import type { Logo } from '../../http/web-files.ts'
import { optional, parseMatch, parseOrigins, parseSwitch, refuse } from './parsers.ts'

const mailAddress = /^[^\s@/:<>"]+@[^\s@/:<>"]+$/

export const pageSettings = {
  WEB: {
    default: 'on',
    flag: '--web <on|off>',
    meaning:
      'Whether the [billing page](page.md) and the [API reference](api.md#the-reference-in-a-browser) are served: `on` or `off`.',
    parse: parseSwitch,
  },
  PAY: {
    default: 'on',
    flag: '--pay <on|off>',
    meaning:
      "Whether an open invoice has a link to [Stripe's page](api.md#payment-page) where the customer can pay it: `on` or `off`.",
    parse: parseSwitch,
  },
  PAGE_NAME: optional({
    meaning: "The company's name on the [billing page](page.md#your-name-on-it) and in its title.",
    parse: parseMatch(/^[^\p{Cc}]{1,100}$/u, 'must have 1 to 100 characters'),
  }),
  PAGE_LOGO: optional({
    meaning:
      'Path of the image that the billing page shows as logo and icon: `.svg`, `.png`, `.jpg`, `.jpeg` or `.webp`, up to 256 KB.',
    parse: parseLogo,
  }),
  PAGE_ACCENT: optional({
    meaning:
      'Colour of buttons and links on the billing page, for example `#0a6650`. Its contrast with the light background must be at least 4.5.',
    parse: parseAccent,
  }),
  PAGE_SUPPORT: optional({
    meaning: 'Contact that the billing page shows at its end: a mail address or an `https` address.',
    parse: parseMatch(
      /^(?:[^\s@/:]+@[^\s@/:]+|https:\/\/[^\s"<>]+)$/,
      'must be a mail address, or an address that begins with https://',
    ),
  }),
  PAGE_TAX_ID: optional({
    meaning: "The company's tax ID. Each printed page of a [statement](page.md#the-billing-page) shows it.",
    parse: parseMatch(/^[^\p{Cc}]{1,30}$/u, 'must have 1 to 30 characters'),
  }),
  PAGE_ADDRESS: optional({
    meaning:
      "The company's postal address, in one line. Each printed page of a statement shows it beside the tax ID.",
    parse: parseMatch(/^[^\p{Cc}]{1,200}$/u, 'must have 1 to 200 characters'),
  }),
  SMTP_URL: optional({
    meaning:
      'Address of a mail server, for example `smtps://user:password@smtp.example.com`. With it, customers can [sign in by e-mail](access.md#sign-in-by-e-mail). It also needs `CUSTOMER_LINK_KEY`, `PUBLIC_URL`, the billing page (`WEB`) and a sender (`SMTP_FROM`).',
    isSecret: true,
    parse: parseMatch(/^smtps?:\/\/[^\s/]+\/?$/, 'must be an address that begins with smtp:// or smtps://'),
  }),
  SMTP_FROM: optional({
    meaning:
      'Mail address of the sender of sign-in mails. By default it is the value of `PAGE_SUPPORT`, if that is a mail address.',
    parse: parseMatch(mailAddress, 'must be a mail address'),
  }),
  TIME_ZONE: {
    default: 'UTC',
    meaning:
      'Time zone of the days in CSV files of the billing page, for example `Europe/Lisbon`. It is also the default of `--timezone` in `export` and `reconcile`. Days in the API are always UTC.',
    parse: parseTimeZone,
  },
  EMBED_ORIGINS: optional({
    flag: '--embed-origins <origins>',
    meaning:
      'Origins (scheme, host and port) whose pages may show the [billing page](page.md#in-a-frame) in a frame, separated by commas, for example `https://app.example.com`.',
    parse: parseOrigins,
  }),
} as const

function parseTimeZone(text: string): string {
  return isTimeZone(text) ? text : refuse('must be the name of a time zone, such as Europe/Lisbon or UTC')
}

const imageTypes: Record<string, string> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}
const largestLogoBytes = 256 * 1024

function parseLogo(path: string): Logo {
  const type = imageTypes[extname(path).toLowerCase()] ?? refuse('must be a file .svg, .png, .jpg or .webp')
  let content: Buffer
  try {
    content = readFileSync(path)
  } catch {
    return refuse('must be the path of a file that this user may read')
  }
  return content.length <= largestLogoBytes ? { type, content } : refuse('must be a file of at most 256 KB')
}

/** The page's light background colour. The page's cards are lighter than this colour. */
const ground = '#f4f6f4'
const minContrast = 4.5

/** Refuses a colour whose contrast with the background is below 4.5, the minimum of WCAG 2.2, 1.4.3. */
function parseAccent(text: string): string {
  if (!/^#[\da-f]{6}$/i.test(text)) return refuse('must be a colour such as #0a6650')
  const contrast = (luminanceOf(ground) + 0.05) / (luminanceOf(text) + 0.05)
  if (contrast >= minContrast) return text
  return refuse(
    `must be a darker colour (its contrast with the background is ${contrast.toFixed(1)} and must be at least ${minContrast})`,
  )
}

function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(start => {
    const share = Number.parseInt(colour.slice(start, start + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
