/** Flags that several commands share: each a setting that people also type. */
import type { Command } from 'commander'
import type { Flags } from './config.ts'
import { type Setting, settings } from './settings.ts'

const flags: Partial<Record<Setting, string>> = {
  DATABASE_URL: '--database-url <url>',
  DATABASE_READ_URL: '--database-read-url <url>',
  HOST: '--host <address>',
  PORT: '--port <port>',
  RATE_LIMIT: '--rate-limit <limit>',
  LOG_LEVEL: '--log-level <level>',
  SHUTDOWN_DELAY: '--shutdown-delay <seconds>',
  WORKERS: '--workers <count>',
}

export const stripeSettings: readonly Setting[] = ['STRIPE_API_KEY', 'STRIPE_API_BASE']
export const invoiceXpressSettings: readonly Setting[] = [
  'INVOICEXPRESS_ACCOUNT',
  'INVOICEXPRESS_API_KEY',
  'INVOICEXPRESS_API_BASE',
]

/** How invoices are tied to documents: whoever derives that needs all of them. */
export const linkSettings: readonly Setting[] = [
  'LINK_REFERENCE',
  'LINK_METADATA_KEYS',
  'LINK_IGNORE_ZERO',
  'LINK_IGNORE_BEFORE',
  'LINK_CREATING_TIMEOUT',
]

export function addSettings(command: Command, ...names: Setting[]): Command {
  const environmentOnly: string[] = []
  for (const name of names) {
    const { meaning, default: value } = settings[name]
    const flag = flags[name]
    const text = meaning.replaceAll('`', '')
    if (flag !== undefined) command.option(flag, `${text} (env: ${name}, default: ${value})`)
    else environmentOnly.push(`\n${name} (environment only, default: ${value}):\n  ${text}`)
  }
  // What is a secret has no flag: other users of a machine can read a command line. Nor has what is set once.
  return environmentOnly.length === 0 ? command : command.addHelpText('after', environmentOnly.join('\n'))
}

/** Commander's options, by the settings they stand for. */
export function readFlags(options: Record<string, unknown>): Flags {
  return Object.fromEntries(
    Object.entries(options)
      .map(([key, value]) => [key.replace(/[A-Z]/g, upper => `_${upper}`).toUpperCase(), value])
      .filter(([name]) => Object.hasOwn(settings, name as string)),
  )
}
