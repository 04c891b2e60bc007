/** Amounts of two systems against each other: one counts in the smallest unit, the other writes decimals. No floats. */
import { decimalsOf } from '../money.ts'

/** Names in use beside the English ones that Node knows. */
const otherNames: Record<string, string> = {
  euros: 'eur',
  'united states dollar': 'usd',
  'american dollar': 'usd',
  'pound sterling': 'gbp',
  'great britain pound': 'gbp',
  yen: 'jpy',
  real: 'brl',
  'polish złoty': 'pln',
}

const codes = new Map(Object.entries(otherNames))
const names = new Intl.DisplayNames('en', { type: 'currency' })
for (const code of Intl.supportedValuesOf('currency').map(each => each.toLowerCase())) {
  codes.set(code, code)
  codes.set(names.of(code)?.toLowerCase() ?? code, code)
}

/** The code of a currency from its name or code; null when it is not known here. */
export function currencyOf(name: string | null): string | null {
  return codes.get(name?.normalize('NFC').trim().replace(/\s+/g, ' ').toLowerCase() ?? '') ?? null
}

/** Whether they are less than one smallest unit apart; null when the decimal cannot be read. */
export function isSameAmount(smallest: number, currency: string, decimal: string): boolean | null {
  const [, sign, whole = '', fraction = ''] = /^([+-]?)(\d+)(?:\.(\d*))?$/.exec(decimal.trim()) ?? []
  if (sign === undefined) return null
  const decimals = decimalsOf(currency)
  const scale = Math.max(decimals, fraction.length)
  const amount = BigInt(whole + fraction.padEnd(scale, '0')) * (sign === '-' ? -1n : 1n)
  const unit = 10n ** BigInt(scale - decimals)
  const apart = amount - BigInt(smallest) * unit
  return (apart < 0n ? -apart : apart) < unit
}

/** A decimal in millionths, with any digits beyond them left out; null when it cannot be read. */
export function toMillionths(decimal: string): bigint | null {
  const [, sign, whole = '', fraction = ''] = /^([+-]?)(\d+)(?:\.(\d*))?$/.exec(decimal.trim()) ?? []
  if (sign === undefined) return null
  return BigInt(whole + fraction.slice(0, 6).padEnd(6, '0')) * (sign === '-' ? -1n : 1n)
}
