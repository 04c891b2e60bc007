/** Amounts of two systems against each other: one counts in the smallest unit, the other writes decimals. No floats. */
import { decimalsOf, toMillionths } from '../money.ts'

/** Whether they are less than one smallest unit apart; null when the decimal cannot be read. */
export function isSameAmount(smallest: number, currency: string, decimal: string): boolean | null {
  const unit = 10n ** BigInt(6 - decimalsOf(currency))
  return isWithin(unit, BigInt(smallest) * unit, toMillionths(decimal))
}

/** Whether two decimals are less than a cent apart. */
export function isNear(one: string, other: string): boolean {
  return isWithin(10_000n, toMillionths(one), toMillionths(other)) === true
}

function isWithin(unit: bigint, one: bigint | null, other: bigint | null): boolean | null {
  if (one === null || other === null) return null
  return one - other < unit && other - one < unit
}
