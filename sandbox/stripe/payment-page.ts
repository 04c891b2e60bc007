/** The local Stripe's hosted invoice page. It shows the amount, and a button pays an open invoice without moving money. */
import { decimalsOf } from '../../src/domain/money.ts'
import type { StripeInvoice } from './objects.ts'

export function writePaymentPage({ number, status, amount_remaining, currency }: StripeInvoice): string {
  const decimals = decimalsOf(currency)
  const amount = new Intl.NumberFormat('en', { style: 'currency', currency, minimumFractionDigits: decimals })
  const title = escapeHtml(`Invoice ${number ?? ''}`)
  const action =
    status === 'open'
      ? '<form method="post"><button>Pay</button></form>'
      : `<p>This invoice is ${status}.</p>`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<h1>${title}</h1>
<p>${escapeHtml(amount.format(amount_remaining / 10 ** decimals))}</p>
${action}
<p>This page belongs to a sandbox: no money moves.</p>
`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}
