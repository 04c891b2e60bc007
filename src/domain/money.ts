/** Amounts as people write them: the records count in a currency's smallest unit. No floats. Imports nothing. */

/** Currencies that the payment platform counts in whole units. Not ISK and UGX: without decimals, and yet counted in hundredths. */
const withoutDecimals = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '))
const withThreeDecimals = new Set('bhd jod kwd omr tnd'.split(' '))

/** The most decimals that any currency has. */
export const maxDecimals = 3

/** Decimals of a currency's smallest unit, as the payment platform counts. */
export function decimalsOf(currency: string): number {
  return withoutDecimals.has(currency) ? 0 : withThreeDecimals.has(currency) ? maxDecimals : 2
}

type Amounts = Record<'subtotal_cents' | 'discount_cents' | 'tax_cents' | 'total_cents', number>

/** The tax if the prices include it, so that it is a part of the subtotal; 0 if it is added. */
export function includedTaxOf({ subtotal_cents, discount_cents, tax_cents, total_cents }: Amounts): number {
  return subtotal_cents - discount_cents === total_cents ? tax_cents : 0
}

/** The amount as a decimal: "-12.34" of -1234 eur. */
export function writeAmount(smallest: number | bigint, currency: string): string {
  const decimals = decimalsOf(currency)
  const digits = String(smallest)
    .replace('-', '')
    .padStart(decimals + 1, '0')
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
  return smallest < 0 ? `-${text}` : text
}

/** A decimal in millionths, with any digits beyond them left out; null when it cannot be read. */
export function toMillionths(decimal: string): bigint | null {
  const [, sign, whole = '', fraction = ''] = /^([+-]?)(\d+)(?:\.(\d*))?$/.exec(decimal.trim()) ?? []
  if (sign === undefined) return null
  return BigInt(whole + fraction.slice(0, 6).padEnd(6, '0')) * (sign === '-' ? -1n : 1n)
}

/** The reverse, without zeros at its end. */
export function fromMillionths(amount: bigint): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(7, '0')
  const fraction = digits.slice(-6).replace(/0+$/, '')
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -6)}${fraction && `.${fraction}`}`
}
