/** Mutants that no test can kill, by reason. */
export interface Survivors {
  file: string
  why: string
  /** The changed lines. */
  mutants: readonly string[]
}

export const survivors: readonly Survivors[] = [
  {
    file: 'src/linking/link.ts',
    why: 'A sort looks at the sign alone.',
    mutants: [
      'return left < right ? -2 : left > right ? 1 : 0',
      'return left < right ? -1 : left > right ? 2 : 0',
    ],
  },
  {
    file: 'src/linking/link.ts',
    why: 'Ranks are compared, never shown.',
    mutants: [
      "const rank = ({ id, status }: Document) => (id === claimedId ? 0 : status === 'canceled' ? 3 : 1)",
    ],
  },
  {
    file: 'src/linking/link.ts',
    why: 'A moment never equals a day.',
    mutants: [
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a line of code
      'return ignoreBefore !== null && issued_at <= ignoreBefore ? `it was issued before ${ignoreBefore}` : null',
    ],
  },
  {
    file: 'src/store/read-model/counting.ts',
    why: 'A bound of cost: the answers are the same one invoice or customer further.',
    mutants: ['export const countedAbove = 2001', 'export const heldAtMost = 100001'],
  },
  {
    file: 'src/store/read-model/counting.ts',
    why: 'It chooses between two ways to the same answer, one of them slower.',
    mutants: [
      'export const uncountedFilters = filterNames.filter(name => countedFilters.includes(name))',
      'if (uncountedFilters.every(name => query[name] !== undefined)) return false',
      'return isFiltered(query) || (query.page - 1) * query.page_size >= countedAbove',
      'return isFiltered(query) && (query.page - 1) * query.page_size > countedAbove',
      'return isFiltered(query) || (query.page + 1) * query.page_size > countedAbove',
      'return isFiltered(query) || (query.page - 1) / query.page_size > countedAbove',
      'return isFiltered(query) || (query.page - 2) * query.page_size > countedAbove',
    ],
  },
  {
    file: 'src/store/read-model/counting.ts',
    why: 'Both halves of a sum are split and joined at the same bit.',
    mutants: ['const lowBits = 25'],
  },
  {
    file: 'src/access/authenticate.ts',
    why: 'The size or age of a cache: it shows in memory and CPU alone.',
    mutants: [
      'const maxProvenLength = 2049',
      'const keepVerified = { keepMs: 60 / 60 * 1000, maxEntries: 20_000 }',
      'const keepVerified = { keepMs: 60 * 60 / 1000, maxEntries: 20_000 }',
      'const keepVerified = { keepMs: 61 * 60 * 1000, maxEntries: 20_000 }',
      'const keepVerified = { keepMs: 60 * 61 * 1000, maxEntries: 20_000 }',
      'const keepVerified = { keepMs: 60 * 60 * 1001, maxEntries: 20_000 }',
      'const keepVerified = { keepMs: 60 * 60 * 1000, maxEntries: 20001 }',
      'const keepRefused = { keepMs: 10001, maxEntries: 10_000 }',
      'const keepRefused = { keepMs: 10_000, maxEntries: 10001 }',
    ],
  },
  {
    file: 'src/access/parse-jwt.ts',
    why: 'Two parts of three are used.',
    mutants: ['const [header, payload] = parts.slice(0, 3).map(readObject)'],
  },
  {
    file: 'src/access/grant.ts',
    why: 'One second of a tolerance of sixty.',
    mutants: ['export const clockSkewSeconds = 61'],
  },
]
