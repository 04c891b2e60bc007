/** The account and the mode of a key. */
import type Stripe from 'stripe'
import { type BillingAccount, SourceError } from '../sources.ts'
import type { PacedCall } from '../upstream/paced-calls.ts'
import { unlessForbidden } from './failures.ts'

export async function identifyAccount(
  stripe: Stripe,
  apiKey: string,
  call: PacedCall,
): Promise<BillingAccount> {
  // A restricted key needs a permission of its own for it.
  const account = await call(() => unlessForbidden(stripe.accounts.retrieveCurrent()), {
    endpoint: 'account',
    urgency: 'now',
  })
  const id = accountId(account)
  // A key names its mode; with one of another form, an invoice does.
  const [, mode] = /^[sr]k_(live|test)_/.exec(apiKey) ?? []
  if (mode === 'live' || mode === 'test') return { id, mode }
  const { data } = await call(() => stripe.invoices.list({ limit: 1 }), {
    endpoint: 'invoices',
    urgency: 'now',
  })
  const [invoice] = data
  return { id, mode: invoice === undefined ? null : invoice.livemode ? 'live' : 'test' }
}

function accountId(account: Stripe.Account | null): string | null {
  if (account !== null && !/^acct_\w+$/.test(String(account.id)))
    throw new SourceError('failed', 'Stripe sent an account that does not fit')
  return account?.id ?? null
}
