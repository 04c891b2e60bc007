/** Settings of Stripe, of InvoiceXpress and of the link between invoices and documents. settings.ts includes this table. */
import { isCalendarDay } from '../../domain/calendar.ts'
import { defaultTemplates, readTemplate, type Template } from '../../domain/link/reference.ts'
import { isOrigin } from '../../sources/pdf/allowed-origins.ts'
import { defaultKeys, type MetadataKeys } from '../../sources/stripe/map-claim.ts'
import {
  optional,
  parseDurationMs,
  parseList,
  parseMatch,
  parseSwitch,
  parseWhole,
  refuse,
  unless,
} from './parsers.ts'

const defaultPdfOrigins = 'https://*.invoicexpress.com'

export const sourceSettings = {
  STRIPE_API_KEY: optional({
    commands: ['serve', 'up', 'sync'],
    meaning:
      'The key of the Stripe account, `rk_…` or `sk_…`. `sync` and `up` read invoices with it. `serve` and `up` fetch PDFs, payment pages and missing line items with it. A [restricted key](sync.md#set-it-up) is enough.',
    isSecret: true,
    parse: parseMatch(/^[sr]k_\w+$/, 'must be a key that begins with sk_ or rk_'),
  }),
  STRIPE_WEBHOOK_SECRET: optional({
    commands: ['up', 'sync'],
    meaning: "The secret that signs Stripe's webhooks, `whsec_…`. `--webhooks` needs it.",
    isSecret: true,
    parse: parseMatch(/^whsec_/, 'must be the secret that Stripe shows, which begins with whsec_'),
  }),
  STRIPE_API_BASE: {
    default: 'https://api.stripe.com',
    commands: ['serve', 'up', 'sync'],
    meaning:
      "Address of the Stripe API: scheme, host and port. The key is sent to this address. A host that is not Stripe's is treated as a [sandbox](sandbox.md). It then has no rate limit, except with a live key, and PDFs may come from a private address.",
    isSecret: true,
    parse: parseApiBase('https://api.stripe.com', 'stripe.com'),
  },
  INVOICEXPRESS_ACCOUNT: optional({
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Name of the InvoiceXpress account. It is the part of its address before `.app.invoicexpress.com`. `INVOICEXPRESS_API_KEY` needs it, except when `INVOICEXPRESS_API_BASE` is set.',
    isSecret: true,
    parse: parseMatch(
      /^[a-z0-9-]+$/,
      'must be only the part of the address before .app.invoicexpress.com, in lower-case letters, digits and hyphens',
    ),
  }),
  INVOICEXPRESS_API_KEY: optional({
    commands: ['serve', 'up', 'sync'],
    meaning:
      'The API key of the InvoiceXpress account. `sync` and `up` read documents with it. `serve` and `up` fetch PDFs of documents with it.',
    isSecret: true,
    parse: parseMatch(
      /^[\w-]+$/,
      'must be a key as InvoiceXpress shows it: letters, digits, hyphens and underscores',
    ),
  }),
  INVOICEXPRESS_API_BASE: {
    default: 'https://{account}.app.invoicexpress.com',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Address of the InvoiceXpress API: scheme, host and port. The key is sent to this address. A host outside `invoicexpress.com` is treated as a sandbox. It then has no rate limit, and PDFs come from that host, even if its address is private.',
    isSecret: true,
    parse: parseApiBase('https://{account}.app.invoicexpress.com', 'invoicexpress.com'),
  },
  INVOICEXPRESS_PDF_ORIGINS: {
    default: defaultPdfOrigins,
    meaning:
      'Origins (scheme, host and port) from which PDFs of documents and SAF-T files may be downloaded, separated by commas. `*.` at the start of a host means all its subdomains.',
    isSecret: true,
    parse: unless(
      defaultPdfOrigins,
      parseList(isOrigin, `must be origins such as ${defaultPdfOrigins}, separated by commas`),
    ),
  },
  DOCUMENT_REFERENCE: {
    default: defaultTemplates.map(({ text }) => text).join(),
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Texts of the [references](linking.md#the-reference) that tie a document to its invoice, separated by commas, for example `{id},Order #{payment}`. Each contains `{id}`, `{payment}` or `{number}` once. In the file `.env`, a value with `#` needs quotes.',
    parse: parseReferences,
  },
  LINK_METADATA_KEYS: {
    default: 'none',
    commands: ['up', 'sync'],
    meaning:
      'Names of metadata keys at Stripe that differ from the [usual names](linking.md#the-convention): pairs of usual name and own name, separated by commas, for example `state=doc_state,ix_id=doc_id`.',
    parse: parseMetadataKeys,
  },
  LINK_IGNORE_ZERO: {
    default: 'off',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Whether invoices with a total of zero are left without a document: `on` (they need none) or `off` (they need one).',
    parse: parseSwitch,
  },
  LINK_IGNORE_BEFORE: optional({
    commands: ['serve', 'up', 'sync'],
    meaning:
      'First day from which invoices need a document, YYYY-MM-DD in UTC. Invoices issued before this day need none.',
    parse: parseDay,
  }),
  LINK_CREATING_TIMEOUT: {
    default: '1h',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Time after which a document in the state `creating` is shown as [failed](linking.md#how-the-state-is-found): a number and `s`, `m`, `h` or `d`.',
    parse: parseDurationMs,
  },
  SIMPLIFIED_LIMIT: {
    default: '100',
    commands: [],
    meaning:
      'Maximum amount of a simplified invoice, in whole euros. `fatura reconcile` lists a larger one as [`simplified_over_limit`](linking.md#comparing-the-two-systems). Set it to 1000 for retail.',
    parse: parseWhole(0, 1_000_000),
  },
} as const

function parseDay(text: string): string {
  return isCalendarDay(text) ? text : refuse('must be a calendar day, written YYYY-MM-DD, or none')
}

function parseReferences(text: string): readonly Template[] {
  const texts = text.split(',').map(part => part.trim())
  const templates = texts.flatMap(each => readTemplate(each) ?? [])
  return templates.length === texts.length && new Set(texts).size === texts.length
    ? templates
    : refuse(
        'must be different texts separated by commas, each with {id}, {payment} or {number} once, for example {id},Order #{payment}',
      )
}

/** Parses the base address of an API. The text may contain `{account}`, which is later replaced by the account's name. */
function parseApiBase(example: string, domain: string): (text: string) => string {
  return text => {
    const url = URL.parse(text.replace('{account}', 'name'))
    if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
      return refuse(`must be an address such as ${example}, without a path`)
    if (url.protocol === 'http:' && url.hostname.endsWith(`.${domain}`))
      return refuse(
        'must begin with https, because other machines on the network could read the key over http',
      )
    return text
  }
}

/** Returns the metadata keys to read at Stripe. The setting's text can replace single default keys. */
function parseMetadataKeys(text: string): MetadataKeys {
  if (text === 'none') return defaultKeys
  const pairs = text.split(',').map(pair => pair.split('=').map(part => part.trim()))
  const keys: MetadataKeys = { ...defaultKeys, ...Object.fromEntries(pairs) }
  const isRight =
    pairs.every(pair => pair.length === 2 && Object.hasOwn(defaultKeys, pair[0] ?? '')) &&
    new Set(pairs.map(([fact]) => fact)).size === pairs.length &&
    // Stripe allows metadata keys of at most 40 characters, without square brackets.
    Object.values(keys).every(key => /^[^[\]]{1,40}$/.test(key)) &&
    new Set(Object.values(keys)).size === Object.keys(defaultKeys).length
  return isRight
    ? keys
    : refuse(
        `must be none or pairs such as state=doc_state,ix_id=doc_id, each with a different name (${Object.keys(defaultKeys).join(', ')}) and a different key`,
      )
}
