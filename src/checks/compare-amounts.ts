/** Amounts of two systems against each other: one counts in the smallest unit, the other writes decimals. No floats. */
import { decimalsOf } from '../money.ts'

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
