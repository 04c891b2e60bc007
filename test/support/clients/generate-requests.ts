/** Requests made from the OpenAPI document: valid, at a boundary, of the wrong type, hostile, doubled, oddly encoded. */
import fc, { type Arbitrary } from 'fast-check'
import { anyCharacter } from './any-character.ts'

/** The parts of the document that requests are made from. */
export interface Parameter {
  name: string
  in: string
  schema: { type?: string; enum?: string[]; format?: string; maxLength?: number }
}

export interface GeneratedRequest {
  /** As the document writes it. */
  route: string
  /** What is sent in place of each path parameter, as it is written in the URL. */
  segments: Record<string, string>
  /** What follows the `?`, as it is written; empty for none. */
  query: string
  method: 'GET' | 'HEAD'
  headers: Record<string, string>
  /** Whose token is sent: `link` and `one` are customer links, `one` of one invoice. */
  bearer: 'all' | 'ana' | 'link' | 'one' | 'revoked' | 'malformed' | 'none'
}

const hostile = [
  ...['%', '_', "' OR '1'='1", '"; DROP TABLE invoices;--', '\\', '\0', 'a\0b', '\u202e', '\uffff', '🧾'],
  ...['../../etc/passwd', '..%2f', '<script>', '{"$gt":""}', '$where', '[]', 'null', 'undefined', 'NaN'],
  ...['constructor', '__proto__', '%00', '\r\nX-Injected: 1', 'é', 'e\u0301', 'İ', 'ß', ' ', '\t', '٣'],
]
const texts = [
  'Ana',
  'lima',
  'ANA LIMA',
  '2026-0',
  'PT123456789',
  'ana@lima.example',
  'settled',
  '4711',
  'in_a',
]

/** Values that a schema allows, nearly allows and does not allow. */
function valuesOf({ type, enum: values, format, maxLength }: Parameter['schema']): Arbitrary<string> {
  const spoilt = fc.oneof(fc.constantFrom(...hostile), fc.string({ unit: anyCharacter, maxLength: 12 }))
  if (type === 'integer')
    return fc.oneof(
      { weight: 3, arbitrary: fc.integer({ min: 1, max: 60 }).map(String) },
      fc.constantFrom(
        '0',
        '-1',
        '-0',
        '49',
        '50',
        '51',
        '007',
        '2147483648',
        '9007199254740993',
        '9'.repeat(40),
      ),
      fc.constantFrom('1.5', '0x10', '1e3', '+1', ' 1', '1 ', 'one', 'true', '--1', '1,000'),
      spoilt,
    )
  if (type === 'array')
    return fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom('document', 'payment', 'document,payment', 'payment,document'),
      },
      fc.constantFrom('document,document', 'document,', ',', 'Document', 'lines', 'document payment'),
      spoilt,
    )
  if (values !== undefined)
    return fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...values) },
      fc.constantFrom(...values).map(value => value.toUpperCase()),
      fc.constantFrom(...values).map(value => `${value} `),
      spoilt,
    )
  if (format === 'date')
    return fc.oneof(
      {
        weight: 3,
        arbitrary: fc.integer({ min: 1, max: 28 }).map(day => `2026-03-${String(day).padStart(2, '0')}`),
      },
      fc.constantFrom('2024-02-29', '0001-01-01', '9999-12-31', '2026-03-31', '1969-12-31'),
      fc.constantFrom(
        '2025-02-29',
        '2026-13-01',
        '2026-00-10',
        '2026-3-2',
        '20260302',
        '2026-03-02T00:00:00Z',
      ),
      spoilt,
    )
  const length = maxLength ?? 200
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...texts) },
    fc.constantFrom('a'.repeat(length), 'a'.repeat(length + 1), '🧾'.repeat(length), '🧾'.repeat(length + 1)),
    fc.array(fc.constantFrom(...texts, ...hostile), { maxLength: 5 }).map(parts => parts.join(' ')),
    spoilt,
  )
}

const encodings: ((text: string) => string)[] = [
  encodeURIComponent,
  text => encodeURIComponent(text).replaceAll('%20', '+'),
  text => [...Buffer.from(text)].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join(''),
]
const encode = (text: string) => fc.constantFrom(...encodings).map(write => write(text.toWellFormed()))
const garbled = fc.constantFrom('%', '%zz', '%c3%28', '%ff', 'a%2', '%ED%A0%80')

function pairsOf(parameter: Parameter): Arbitrary<string> {
  const { name } = parameter
  const value = fc.oneof({ weight: 9, arbitrary: valuesOf(parameter.schema).chain(encode) }, garbled)
  const written = (text: string) => `${name}=${text}`
  return fc.oneof(
    { weight: 20, arbitrary: value.map(written) },
    fc.tuple(value, value).map(both => both.map(written).join('&')),
    value.map(text => `${name}[]=${text}`),
    value.map(text => `${name}%5B0%5D=${text}`),
    value.map(text => `${name.toUpperCase()}=${text}`),
    fc.constantFrom(name, `${name}=`, `&${name}=&`),
  )
}

const unknownPair = fc
  .tuple(fc.constantFrom('sort', 'customer_id', 'customerId', '', '__proto__', 'access_token', '%'), garbled)
  .map(([name, value]) => `${name}=${value}`)

/** Ids as they stand in a URL: those that exist, others of the right form, and what is none. */
export const segmentsOf = {
  customerId: ['cus_ana', 'cus_rui', 'cus_nobody', 'cus%5Fana', `cus_${'x'.repeat(251)}`],
  invoiceId: ['in_a0', 'in_a7', 'in_r1', 'in_none', 'in%5Fa1', `in_${'x'.repeat(252)}`],
  documentId: ['48377', '1002', '1', '9'.repeat(15)],
} as const
const noIds = [
  ...['ana', 'cus_', 'in_', '', '.', '..', '%2e%2e', 'cus_ana%2f..', 'cus_ana%00', 'CUS_ANA', 'cus_ana%20'],
  ...[
    "cus_ana'--",
    '%',
    '%ff',
    '*',
    'cus_ana;in_a0',
    `cus_${'x'.repeat(252)}`,
    'null',
    'in_a0%0d%0aX:1',
    '%5c',
  ],
]

const headers = fc.constantFrom<Record<string, string>>(
  ...[{}, {}, {}, {}, { 'if-none-match': '*' }, { 'if-none-match': '"nothing", W/"x"' }],
  ...[{ 'if-none-match': `"${'x'.repeat(2_000)}"` }, { accept: 'text/html' }, { accept: 'application/json' }],
  ...[
    { range: 'bytes=0-1' },
    { 'if-match': '"x"' },
    { traceparent: 'nonsense' },
    { 'x-http-method': 'DELETE' },
  ],
  { origin: 'https://stranger.example', 'accept-encoding': 'br' },
)

const bearers = [
  ...(['all', 'all', 'all', 'all', 'ana', 'ana', 'link', 'link', 'one'] as const),
  ...(['revoked', 'malformed', 'none'] as const),
]

/** Weights keep the share of downloads small: each customer is served only a few a second. */
export function generateRequests(
  routes: readonly { route: string; parameters: readonly Parameter[]; weight: number }[],
): Arbitrary<GeneratedRequest> {
  return fc.oneof(
    ...routes.map(({ route, parameters, weight }) => ({
      weight,
      arbitrary: fc.record<GeneratedRequest>({
        route: fc.constant(route),
        segments: fc.record(
          Object.fromEntries(
            parameters
              .filter(({ in: place }) => place === 'path')
              .map(({ name }) => [
                name,
                fc.oneof(
                  { weight: 7, arbitrary: fc.constantFrom(...segmentsOf[name as keyof typeof segmentsOf]) },
                  fc.constantFrom(...noIds),
                ),
              ]),
          ),
        ) as Arbitrary<Record<string, string>>,
        query: queriesOf(parameters.filter(({ in: place }) => place === 'query')),
        method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
        headers,
        bearer: fc.constantFrom(...bearers),
      }),
    })),
  )
}

function queriesOf(parameters: readonly Parameter[]): Arbitrary<string> {
  const pairs = parameters.map(parameter => ({ weight: 4, arbitrary: pairsOf(parameter) }))
  return fc
    .array(fc.oneof(...pairs, { weight: 1, arbitrary: unknownPair }), { maxLength: 3 })
    .map(all => all.join('&'))
}
