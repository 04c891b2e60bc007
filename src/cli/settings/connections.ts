/** Rules that concern several settings together. */
import { dayMs } from '../../domain/calendar.ts'
import { CliError } from '../terminal/cli-error.ts'
import { readWhole } from './parsers.ts'
import type { Setting, SettingOf, Settings } from './settings.ts'

const invoiceXpress = ['INVOICEXPRESS_ACCOUNT', 'INVOICEXPRESS_API_KEY', 'INVOICEXPRESS_API_BASE'] as const

export const settingGroups = {
  stripe: ['STRIPE_API_KEY', 'STRIPE_API_BASE'],
  invoiceXpress,
  /** Settings for a command that downloads files of InvoiceXpress as well. */
  invoiceXpressFiles: [...invoiceXpress, 'INVOICEXPRESS_PDF_ORIGINS'],
  provider: [
    'AUTH_JWKS_URL',
    'AUTH_ISSUER',
    'AUTH_AUDIENCE',
    'AUTH_CUSTOMER_CLAIM',
    'AUTH_SCOPE',
    'AUTH_TYP',
  ],
  link: ['DOCUMENT_REFERENCE', 'LINK_IGNORE_ZERO', 'LINK_IGNORE_BEFORE', 'LINK_CREATING_TIMEOUT'],
} as const satisfies Record<string, readonly Setting[]>

type Given<Group extends keyof typeof settingGroups> = Pick<Settings, (typeof settingGroups)[Group][number]>

export function apiOf(given: Pick<Settings, SettingOf<'serve'> & SettingOf<'up'>>) {
  return {
    url: given.DATABASE_READ_URL ?? given.DATABASE_URL,
    host: given.HOST,
    port: given.PORT,
    rateLimit: given.RATE_LIMIT,
    web: given.WEB,
    pay: given.PAY,
    embedOrigins: given.EMBED_ORIGINS ?? [],
    brand: {
      name: given.PAGE_NAME,
      logo: given.PAGE_LOGO,
      accent: given.PAGE_ACCENT,
      support: given.PAGE_SUPPORT,
      taxId: given.PAGE_TAX_ID,
      address: given.PAGE_ADDRESS,
      timeZone: given.TIME_ZONE,
    },
    corsOrigins: given.CORS_ORIGINS ?? [],
    trustedProxies: given.TRUSTED_PROXIES,
    provider: providerOf(given),
    publicUrl: given.PUBLIC_URL,
    readyMaxLagMs: given.READY_MAX_LAG,
    stripe: stripeOf(given),
    invoiceXpress: invoiceXpressOf(given),
    signIn: signInOf(given),
    mcp: given.MCP ? { operatorUrl: given.DATABASE_URL, rules: linkRulesOf(given, true) } : null,
  }
}

/** Returns null when sign-in by e-mail is not configured. */
function signInOf(given: Pick<Settings, SettingOf<'serve'> & SettingOf<'up'>>) {
  const { SMTP_URL: smtpUrl, CUSTOMER_LINK_KEY: key, PUBLIC_URL: publicUrl } = given
  if (smtpUrl === null) return null
  const from = given.SMTP_FROM ?? (given.PAGE_SUPPORT?.includes('://') ? null : given.PAGE_SUPPORT)
  if (key === null || publicUrl === null || !given.WEB)
    throw new CliError(
      'SMTP_URL needs customer links and the billing page, because customers sign in with them. Set CUSTOMER_LINK_KEY (printed by "fatura key add") and PUBLIC_URL, and leave WEB on.',
    )
  if (from === null)
    throw new CliError('SMTP_URL needs a sender of the mails. Set SMTP_FROM to a mail address.')
  const company = given.PAGE_NAME ?? new URL(publicUrl).hostname
  return { smtpUrl, from, company, key, publicUrl, operatorUrl: given.DATABASE_URL }
}

/** Returns null when the admin port is off. */
export function adminOf(
  given: Pick<Settings, 'ADMIN_PORT' | 'ADMIN_HOST' | 'ADMIN_TOKEN' | 'CUSTOMER_LINK_KEY' | 'PUBLIC_URL'>,
) {
  const { ADMIN_PORT: port, ADMIN_HOST: host, ADMIN_TOKEN: token } = given
  if (port === null) return null
  if (token === null)
    throw new CliError(
      'ADMIN_TOKEN is required when ADMIN_PORT is set. Make one with: openssl rand -base64 32',
    )
  return { host, port, token, key: given.CUSTOMER_LINK_KEY, publicUrl: given.PUBLIC_URL }
}

/** Returns null when no Stripe key is set. */
export function stripeOf({ STRIPE_API_KEY: apiKey, STRIPE_API_BASE: base }: Given<'stripe'>) {
  return apiKey === null ? null : { apiKey, base }
}

/** Returns null when no InvoiceXpress key is set. */
export function invoiceXpressOf(given: Given<'invoiceXpress'> & Partial<Given<'invoiceXpressFiles'>>) {
  const { INVOICEXPRESS_ACCOUNT: account, INVOICEXPRESS_API_KEY: apiKey } = given
  const { INVOICEXPRESS_API_BASE: base, INVOICEXPRESS_PDF_ORIGINS: pdfOrigins = null } = given
  if (apiKey === null) return null
  if (account === null && base.includes('{account}'))
    throw new CliError('INVOICEXPRESS_ACCOUNT is required when INVOICEXPRESS_API_KEY is set.')
  return {
    account,
    apiKey,
    base: base.replace('{account}', account ?? ''),
    ...(pdfOrigins !== null && { pdfOrigins }),
  }
}

/** Returns null when no identity provider is configured. */
export function providerOf(given: Given<'provider'>) {
  const { AUTH_JWKS_URL: jwksUrl, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = given
  const { AUTH_CUSTOMER_CLAIM: customerClaim, AUTH_SCOPE: scope, AUTH_TYP: typ } = given
  if (jwksUrl !== null && issuer !== null && audience !== null)
    return { jwksUrl, issuer, audience, customerClaim, scope, typ }
  const together = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const
  const missing = together.filter(name => given[name] === null)
  if (missing.length === together.length && scope === null && typ === null) return null
  throw new CliError(
    `${missing.join(' and ')} must also be set. An identity provider needs all three of AUTH_JWKS_URL, AUTH_ISSUER and AUTH_AUDIENCE.`,
  )
}

/** Rules that link invoices to documents. `isConnected`: an invoicing system is connected. */
export function linkRulesOf(given: Given<'link'>, isConnected: boolean) {
  return {
    references: given.DOCUMENT_REFERENCE,
    ignoreZero: given.LINK_IGNORE_ZERO,
    ignoreBefore: given.LINK_IGNORE_BEFORE,
    creatingTimeoutMs: given.LINK_CREATING_TIMEOUT,
    isConnected,
  }
}

/** Options of the connector. `webhooks`: the port given by `--webhooks`. */
export function syncOf(
  given: Pick<Settings, SettingOf<'sync'>> & Partial<Given<'invoiceXpressFiles'>>,
  webhooks: string | undefined,
) {
  const invoiceXpress = invoiceXpressOf(given)
  return {
    url: given.DATABASE_URL,
    stripe: stripeOf(given),
    invoiceXpress,
    rules: linkRulesOf(given, invoiceXpress !== null),
    keys: given.LINK_METADATA_KEYS,
    webhooks: webhooks === undefined ? null : readWebhooks(webhooks, given),
    changesKeptMs: given.CHANGES_KEPT_DAYS * dayMs,
    outgoingWebhooksPrivate: given.OUTGOING_WEBHOOKS_PRIVATE,
  }
}

function readWebhooks(
  text: string,
  { HOST: host, STRIPE_WEBHOOK_SECRET: secret }: Pick<Settings, 'HOST' | 'STRIPE_WEBHOOK_SECRET'>,
) {
  const port = readWhole(text, 0, 65_535)
  if (port === undefined) throw new CliError(`--webhooks must be a port from 0 to 65535, not '${text}'.`)
  if (secret === null)
    throw new CliError(
      '--webhooks needs STRIPE_WEBHOOK_SECRET. Set it to the secret that Stripe shows, which begins with whsec_.',
    )
  return { host, port, secret }
}
