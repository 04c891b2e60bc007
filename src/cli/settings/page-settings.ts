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
      'Whether the [billing page](page.md) and the [API reference](api.md#the-reference-in-a-browser) are served: `on` or `off`.',
    parse: parseSwitch,
  },
  PAY: {
    default: 'on',
    flag: '--pay <on|off>',
    meaning:
      "Whether customers are led to [Stripe's page](api.md#payment-page) to pay an open invoice: `on` or `off`.",
    parse: parseSwitch,
  },
  PAGE_NAME: {
    default: 'none',
    meaning: "The company's name on the [billing page](page.md#your-name-on-it) and in its title.",
    parse: unless('none', parseMatch(/^[^\p{Cc}]{1,100}$/u, 'must have 1 to 100 characters')),
  },
  PAGE_LOGO: {
    default: 'none',
    meaning:
      'Path of an image for the billing page and its icon: `.svg`, `.png`, `.jpg` or `.webp`, up to 256 KB.',
    parse: unless('none', parseLogo),
  },
  PAGE_ACCENT: {
    default: 'none',
    meaning:
      'Colour of buttons and links on the billing page, like `#0a6650`; its contrast with the light background must be at least 4.5.',
    parse: unless('none', parseAccent),
  },
  PAGE_SUPPORT: {
    default: 'none',
    meaning: 'Contact at the end of the billing page: a mail address, or an `https` address.',
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
      "Time zone of the days in the page's CSV files, and default `--timezone` of `export` and `reconcile`, such as `Europe/Lisbon`. The API's days are always UTC.",
    parse: parseTimeZone,
  },
  EMBED_ORIGINS: {
    default: 'none',
    flag: '--embed-origins <origins>',
    meaning:
      'Origins (scheme, host and port) whose pages may show the [billing page](page.md#in-a-frame) in a frame, separated by commas, like `https://app.example.com`.',
    parse: unless('none', parseOrigins),
  },
} as const
