/** Amounts of two systems against each other: one counts in the smallest unit, the other writes decimals. No floats. */

/** As the payment platform counts them: in whole units. Not UGX, which it has without decimals, and yet counts in hundredths. */
const withoutDecimals = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '))
const withThreeDecimals = new Set('bhd jod kwd omr tnd'.split(' '))

/** How many decimals the smallest unit of a currency has, as the payment platform counts. */
export function decimalsOf(currency: string): number {
  return withoutDecimals.has(currency) ? 0 : withThreeDecimals.has(currency) ? 3 : 2
}

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

/** As a decimal, such as "-12.34" of -1234 eur. */
export function writeAmount(smallest: number, currency: string): string {
  const decimals = decimalsOf(currency)
  const digits = String(Math.abs(smallest)).padStart(decimals + 1, '0')
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
  return smallest < 0 ? `-${text}` : text
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
