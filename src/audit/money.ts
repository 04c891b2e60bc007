/** Amounts of two systems against each other: one counts in the smallest unit, the other writes decimals. No floats. */
import { decimalsOf } from '../money.ts'

/** Names as invoicing systems write them, in lower case. */
const codes: Record<string, string> = {
  euro: 'eur',
  euros: 'eur',
  'us dollar': 'usd',
  'united states dollar': 'usd',
  'american dollar': 'usd',
  'british pound': 'gbp',
  'pound sterling': 'gbp',
  'great britain pound': 'gbp',
  yen: 'jpy',
  'japanese yen': 'jpy',
  'swiss franc': 'chf',
  'brazilian real': 'brl',
  real: 'brl',
  'kuwaiti dinar': 'kwd',
  'tunisian dinar': 'tnd',
  'bahraini dinar': 'bhd',
  'jordanian dinar': 'jod',
  'canadian dollar': 'cad',
  'australian dollar': 'aud',
  'new zealand dollar': 'nzd',
  'danish krone': 'dkk',
  'norwegian krone': 'nok',
  'swedish krona': 'sek',
  'icelandic króna': 'isk',
  'polish zloty': 'pln',
  'polish złoty': 'pln',
  'czech koruna': 'czk',
  'hungarian forint': 'huf',
  'romanian leu': 'ron',
  'bulgarian lev': 'bgn',
  'mexican peso': 'mxn',
  'chilean peso': 'clp',
  'indian rupee': 'inr',
  'chinese yuan': 'cny',
  'south korean won': 'krw',
  'south african rand': 'zar',
  'angolan kwanza': 'aoa',
  'mozambican metical': 'mzn',
  'cape verdean escudo': 'cve',
  'moroccan dirham': 'mad',
}

const known = new Set(Object.values(codes))

/** The currency that a name or code means; null when it is not known here. */
export function currencyOf(name: string | null): string | null {
  const text = name?.normalize('NFC').trim().replace(/\s+/g, ' ').toLowerCase() ?? ''
  return known.has(text) ? text : Object.hasOwn(codes, text) ? (codes[text] ?? null) : null
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
