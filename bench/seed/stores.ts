/** The seeded stores that a run measures. */
import { createRandom, shuffle } from '../../sandbox/random.ts'
import type { EngineName, Options } from '../options.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres-server.ts'
import { customerId, type Shape } from './corpus.ts'
import { seedStore } from './seed.ts'

export interface SeededStore {
  engine: EngineName
  /** As its owner. */
  url: string
  /** As the role that may only read. */
  readUrl: string
  /** Null on SQLite. */
  server: PostgresServer | null
}

export const engineLabels: Record<EngineName, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

/** The engines that are asked for: SQLite needs nothing, PostgreSQL is started. */
export async function startEngines({ engines, folder }: Options): Promise<(PostgresServer | null)[]> {
  const servers: (PostgresServer | null)[] = []
  for (const engine of engines) servers.push(engine === 'postgres' ? await startPostgres(folder) : null)
  return servers
}

/** Seeds the store unless an earlier run has done it. */
export async function openSeeded(
  { folder }: Pick<Options, 'folder'>,
  shape: Shape,
  server: PostgresServer | null,
): Promise<SeededStore> {
  const url = await seedStore(folder, shape, server)
  if (server === null) return { engine: 'sqlite', url, readUrl: url, server }
  return { engine: 'postgres', url, readUrl: await grantReading(server, url), server }
}

/** The API's role as in docs/postgresql.md: it may call the functions, and nothing else. */
async function grantReading(server: PostgresServer, url: string): Promise<string> {
  const address = new URL(url)
  await server.query(
    address.pathname.slice(1),
    `DO $$ BEGIN
       IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fatura_api') THEN
         CREATE ROLE fatura_api LOGIN PASSWORD 'bench';
       END IF;
     END $$;
     GRANT USAGE ON SCHEMA fatura TO fatura_api`,
  )
  address.username = 'fatura_api'
  return address.href
}

/** Small customers from all over the store, always the same ones: none is read often enough to stay hot by itself. */
export function chooseCustomers(shape: Shape, count: number): string[] {
  const indexes = Array.from({ length: shape.customers }, (_, index) => index)
  return shuffle(createRandom(7), indexes).slice(0, count).map(customerId)
}
