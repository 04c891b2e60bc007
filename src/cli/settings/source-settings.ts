/** The settings of Stripe, of InvoiceXpress and of the link between invoices and documents: a part of the table in settings.ts. */
import { isOrigin } from '../../pdf/allowed-origins.ts'
import {
  parseApiBase,
  parseDay,
  parseDurationMs,
  parseList,
  parseMatch,
  parseMetadataKeys,
  parseReference,
  parseSwitch,
  unless,
} from './parsers.ts'

const usualPdfOrigins = 'https://*.invoicexpress.com'

export const sourceSettings = {
  STRIPE_API_KEY: {
    default: 'none',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'A Stripe key, `rk_…` or `sk_…`. `sync` and `up` read invoices with it; `serve` and `up` fetch PDFs, and lines that are not stored. A [restricted key](sync.md#set-it-up) is enough.',
    isSecret: true,
    parse: unless('none', parseMatch(/^[sr]k_\w+$/, 'must be a key that begins with sk_ or rk_')),
  },
  STRIPE_WEBHOOK_SECRET: {
    default: 'none',
    commands: ['up', 'sync'],
    meaning: "Secret of Stripe's webhooks, `whsec_…`. Required with `--webhooks`.",
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(/^whsec_/, 'must be the secret that Stripe shows, which begins with whsec_'),
    ),
  },
  STRIPE_API_BASE: {
    default: 'https://api.stripe.com',
    commands: ['serve', 'up', 'sync'],
    meaning:
      "Address of the Stripe API: scheme, host and port. The key is sent there. A host that is not Stripe's counts as a [sandbox](sandbox.md): no rate limit, and PDFs may come from a private address.",
    isSecret: true,
    parse: parseApiBase('https://api.stripe.com', 'stripe.com'),
  },
  INVOICEXPRESS_ACCOUNT: {
    default: 'none',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Name of the InvoiceXpress account: the part before `.app.invoicexpress.com` in its address. Required with `INVOICEXPRESS_API_KEY`, unless `INVOICEXPRESS_API_BASE` is set.',
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(
        /^[a-z0-9-]+$/,
        'must be the name alone, the part before .app.invoicexpress.com: lower-case letters, digits and hyphens',
      ),
    ),
  },
  INVOICEXPRESS_API_KEY: {
    default: 'none',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Key of the InvoiceXpress account. `sync` and `up` read documents with it; `serve` and `up` fetch their PDFs.',
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(
        /^[\w-]+$/,
        'must be a key as InvoiceXpress shows it: letters, digits, hyphens and underscores',
      ),
    ),
  },
  INVOICEXPRESS_API_BASE: {
    default: 'https://{account}.app.invoicexpress.com',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Address of the InvoiceXpress API: scheme, host and port. The key is sent there. A host outside `invoicexpress.com` counts as a sandbox: no rate limit, and PDFs come from that host, even from a private address.',
    isSecret: true,
    parse: parseApiBase('https://{account}.app.invoicexpress.com', 'invoicexpress.com'),
  },
  INVOICEXPRESS_PDF_ORIGINS: {
    default: usualPdfOrigins,
    meaning:
      'Allowed origins (scheme, host and port) of the PDFs of documents and of SAF-T files, separated by commas; `*.` at the start of a host means its subdomains.',
    isSecret: true,
    parse: unless(
      usualPdfOrigins,
      parseList(isOrigin, `must be origins like ${usualPdfOrigins}, separated by commas`),
    ),
  },
  LINK_REFERENCE: {
    default: '{id}',
    commands: ['serve', 'up', 'sync'],
    meaning: "Reference of an invoice's document: a text with `{id}` once, in place of the invoice's ID.",
    parse: parseReference,
  },
  LINK_METADATA_KEYS: {
    default: 'none',
    commands: ['up', 'sync'],
    meaning:
      'Metadata keys at Stripe that differ from the [usual ones](linking.md#the-convention): pairs like `state=doc_state,ix_id=doc_id`.',
    parse: parseMetadataKeys,
  },
  LINK_IGNORE_ZERO: {
    default: 'off',
    commands: ['serve', 'up', 'sync'],
    meaning: 'Whether invoices with a total of zero need no document: `on` or `off`.',
    parse: parseSwitch,
  },
  LINK_IGNORE_BEFORE: {
    default: 'none',
    commands: ['serve', 'up', 'sync'],
    meaning: 'Invoices issued before this day, YYYY-MM-DD in UTC, need no document.',
    parse: unless('none', parseDay),
  },
  LINK_CREATING_TIMEOUT: {
    default: '1h',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Time after which a document that is `creating` counts as [failed](linking.md#how-the-state-is-found): a number and `s`, `m`, `h` or `d`.',
    parse: parseDurationMs,
  },
} as const
