/** What a restricted key may or may not read. */
export const permissions = [
  'invoices',
  'customers',
  'events',
  'tax_rates',
  'webhook_endpoints',
  'account',
] as const
export type Permission = (typeof permissions)[number]
