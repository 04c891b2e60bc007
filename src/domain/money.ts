/** Writes amounts for people. Stored amounts count a currency's smallest unit. Uses no floating-point numbers. Imports nothing. */

/**
 * Currencies that the payment platform counts in whole units. ISK and UGX are missing on purpose: the platform counts them in hundredths.
 */
const withoutDecimals = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '))
const withThreeDecimals = new Set('bhd jod kwd omr tnd'.split(' '))

export const maxDecimals = 3

/** Returns the number of decimals in which the payment platform counts a currency. */
export function decimalsOf(currency: string): number {
  return withoutDecimals.has(currency) ? 0 : withThreeDecimals.has(currency) ? maxDecimals : 2
}

type Amounts = Record<'subtotal_cents' | 'discount_cents' | 'tax_cents' | 'total_cents', number>

/** Returns the tax that the subtotal contains when prices include tax. Returns 0 when tax is added to the subtotal. */
export function includedTaxOf({ subtotal_cents, discount_cents, tax_cents, total_cents }: Amounts): number {
  return subtotal_cents - discount_cents === total_cents ? tax_cents : 0
}

/** Returns an amount in the smallest unit as decimal text. For example, -1234 in eur gives "-12.34". */
export function writeAmount(smallest: number | bigint, currency: string): string {
  const decimals = decimalsOf(currency)
  const digits = String(smallest)
    .replace('-', '')
    .padStart(decimals + 1, '0')
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
  return smallest < 0 ? `-${text}` : text
}

/** Converts decimal text to millionths and drops further digits. Returns null when the text is not a decimal. */
export function toMillionths(decimal: string): bigint | null {
  const [, sign, whole = '', fraction = ''] = /^([+-]?)(\d+)(?:\.(\d*))?$/.exec(decimal.trim()) ?? []
  if (sign === undefined) return null
  return BigInt(whole + fraction.slice(0, 6).padEnd(6, '0')) * (sign === '-' ? -1n : 1n)
}

/** Converts millionths to decimal text, without trailing zeros. */
export function fromMillionths(amount: bigint): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(7, '0')
  const fraction = digits.slice(-6).replace(/0+$/, '')
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -6)}${fraction && `.${fraction}`}`
}
