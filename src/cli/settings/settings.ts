/** Every setting: a variable of the environment, and a flag on the commands where people type it. */
export const settings = {
  DATABASE_URL: {
    default: 'sqlite:data/fatura.db',
    meaning:
      'Where the store is: `sqlite:` and the path of a file, or `postgres://user:password@host:5432/name`.',
  },
  DATABASE_READ_URL: {
    default: 'as DATABASE_URL',
    meaning: 'Where the API reads, when that is not where others write: a replica of the same store.',
  },
  HOST: { default: '127.0.0.1', meaning: 'The address to listen on; `0.0.0.0` or `::` for every interface.' },
  PORT: { default: '3000', meaning: 'The port to listen on; 0 takes a free one.' },
  STRIPE_API_KEY: {
    default: 'none',
    meaning:
      'A Stripe key that may read invoices. sync and up bring them in with it; serve and up fetch PDFs, and lines that are not stored.',
  },
  STRIPE_WEBHOOK_SECRET: {
    default: 'none',
    meaning: 'What Stripe signs its webhooks with; begins with `whsec_`. Needed to receive them.',
  },
  STRIPE_API_BASE: {
    default: 'https://api.stripe.com',
    meaning: 'Where the Stripe API is; another address is taken for a sandbox.',
  },
  INVOICEXPRESS_ACCOUNT: {
    default: 'none',
    meaning: 'The InvoiceXpress account: what stands before `.app.invoicexpress.com` in its address.',
  },
  INVOICEXPRESS_API_KEY: {
    default: 'none',
    meaning:
      'The key of the InvoiceXpress account: certified documents, and their PDFs, then come from there.',
  },
  INVOICEXPRESS_API_BASE: {
    default: 'https://{account}.app.invoicexpress.com',
    meaning: 'Where the InvoiceXpress API is; another address is taken for a sandbox.',
  },
  INVOICEXPRESS_PDF_ORIGINS: {
    default: 'https://*.invoicexpress.com',
    meaning: 'Where PDFs of certified documents may come from: origins, separated by commas.',
  },
  LINK_REFERENCE: {
    default: '{id}',
    meaning: "What a document's reference is for an invoice: a text with `{id}` in it, for the invoice's ID.",
  },
  LINK_METADATA_KEYS: {
    default: 'none',
    meaning:
      'Other keys of the metadata at Stripe than the usual: pairs like `state=doc_state,ix_id=doc_id`.',
  },
  LINK_IGNORE_ZERO: {
    default: 'off',
    meaning: 'Whether invoices that come to nothing need no document: `on` or `off`.',
  },
  LINK_IGNORE_BEFORE: {
    default: 'none',
    meaning: 'Invoices issued before this day need no document: YYYY-MM-DD.',
  },
  LINK_CREATING_TIMEOUT: {
    default: '1h',
    meaning:
      'How long a document may be in the making before it counts as failed: a number and `s`, `m`, `h` or `d`.',
  },
  RATE_LIMIT: {
    default: '6000/m',
    meaning: 'Requests per token and process: a number, `/` and `s`, `m` or `h`; or `off`.',
  },
  LOG_LEVEL: {
    default: 'info',
    meaning: 'What is logged: `debug`, `info` (a line per request), `warn`, `error` or `silent`.',
  },
  SHUTDOWN_DELAY: {
    default: '5s',
    meaning:
      'How long to go on serving after SIGTERM, while `/ready` answers 503: a number of seconds and `s`; `0s` stops at once.',
  },
  WORKERS: {
    default: '1',
    meaning: 'How many processes serve the address, 1 to 256; `auto` is one for each core.',
  },
} as const

export type Setting = keyof typeof settings
