/** The settings of the page: a part of the table in settings.ts. */
import {
  parseAccent,
  parseLogo,
  parseMatch,
  parseOrigins,
  parseSwitch,
  parseTimeZone,
  unless,
} from './parsers.ts'

export const pageSettings = {
  WEB: {
    default: 'on',
    flag: '--web <on|off>',
    meaning:
      'Whether pages are served beside the API: the [billing page](page.md) and the [API reference](api.md#the-reference-in-a-browser). `on` or `off`.',
    parse: parseSwitch,
  },
  PAY: {
    default: 'on',
    flag: '--pay <on|off>',
    meaning:
      "Whether customers are led to [Stripe's own page](api.md#payment-page) to pay an open invoice. `on` or `off`.",
    parse: parseSwitch,
  },
  PAGE_NAME: {
    default: 'none',
    meaning: "The company's name on the [billing page](page.md#your-name-on-it), and in its title.",
    parse: unless('none', parseMatch(/^[^\p{Cc}]{1,100}$/u, 'must have 1 to 100 characters')),
  },
  PAGE_LOGO: {
    default: 'none',
    meaning:
      'The path of an image for the billing page and its icon: `.svg`, `.png`, `.jpg` or `.webp`, up to 256 KB. Served from the service itself.',
    parse: unless('none', parseLogo),
  },
  PAGE_ACCENT: {
    default: 'none',
    meaning:
      'The colour of buttons and links on the billing page, like `#0a6650`. Its contrast with the light background must be at least 4.5; in dark mode a lighter tone is used.',
    parse: unless('none', parseAccent),
  },
  PAGE_SUPPORT: {
    default: 'none',
    meaning:
      'Where customers ask: a mail address, or the `https` address of a page. Shown at the end of the billing page.',
    parse: unless(
      'none',
      parseMatch(
        /^(?:[^\s@/:]+@[^\s@/:]+|https:\/\/[^\s"<>]+)$/,
        'must be a mail address, or an address that begins with https://',
      ),
    ),
  },
  TIME_ZONE: {
    default: 'UTC',
    meaning:
      'Time zone of the days in CSV files of the page, and default of `--timezone` of `export` and `reconcile`, such as `Europe/Lisbon`. The days of the API are always those of UTC.',
    parse: parseTimeZone,
  },
  EMBED_ORIGINS: {
    default: 'none',
    flag: '--embed-origins <origins>',
    meaning:
      'The origins (scheme, host and port) whose pages may show the [billing page](page.md#in-a-frame) in a frame, separated by commas, like `https://app.example.com`.',
    parse: unless('none', parseOrigins),
  },
} as const
