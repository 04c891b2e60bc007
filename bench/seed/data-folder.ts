/** Where seeded stores are kept between runs, and under which names: another schema or corpus has another name. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Shape } from './corpus.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export const defaultFolder = join(root, 'bench', '.data')

/** Files of an engine that change neither what is stored nor the schema. Any other change seeds again. */
const onlyRead = new Set(['reader.ts', 'list-statement.ts', 'pool.ts', 'tokens.ts'])

export interface DataName {
  /** What may be thrown away when there is a new one: the same invoices under an older schema. */
  prefix: string
  name: string
}

export function nameStore(engine: 'sqlite' | 'postgres', shape: Shape): DataName {
  const folder = join('src', 'store', engine)
  const all = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  const files = all.filter(file => /\.(ts|sql)$/.test(file) && !onlyRead.has(file))
  return nameData('store', shape, [
    ...files.sort().map(file => join(folder, file)),
    'src/store/sql/search.ts',
  ])
}

/** The tables of the floors and of the peer, which hold the small customers' invoices alone. */
export function nameTables(shape: Shape): DataName {
  return nameData('tables', { ...shape, large: [] }, [
    'bench/seed/seed-tables.ts',
    'bench/seed/peer-table.ts',
  ])
}

function nameData(kind: string, { customers, each, large }: Shape, files: readonly string[]): DataName {
  const hash = createHash('sha256')
  for (const file of [...files, 'src/domain/invoice.ts', 'bench/seed/corpus.ts'])
    hash.update(readFileSync(join(root, file)))
  // No shape's prefix may be the beginning of another's.
  const prefix = `${kind}_${[`${customers}x${each}`, ...large].join('_')}__`
  return { prefix, name: prefix + hash.digest('hex').slice(0, 10) }
}
