/** The peer's tables, as Drizzle sees them and as PostgreSQL creates them: one typed column a field. */
import { bigint, pgTable, primaryKey, real, text, timestamp } from 'drizzle-orm/pg-core'

export const invoices = pgTable(
  'invoices',
  {
    id: text().notNull(),
    number: text(),
    display_name: text().notNull(),
    customer_name: text(),
    customer_id: text().notNull(),
    customer_email: text(),
    company_name: text(),
    customer_tax_id: text(),
    issued_at: timestamp({ withTimezone: true, precision: 3 }).notNull(),
    ix_created_at: timestamp({ withTimezone: true, precision: 3 }),
    subtotal_cents: bigint({ mode: 'number' }).notNull(),
    discount_cents: bigint({ mode: 'number' }).notNull(),
    tax_cents: bigint({ mode: 'number' }).notNull(),
    tax_percent: real(),
    total_cents: bigint({ mode: 'number' }).notNull(),
    currency: text().notNull(),
    status: text().notNull(),
    ix_sync_state: text().notNull(),
    ix_id: bigint({ mode: 'number' }),
    ix_status: text(),
  },
  table => [primaryKey({ columns: [table.customer_id, table.id] })],
)

export const tokens = pgTable('tokens', { hash: text().primaryKey() })

export const createPeerTable = `
  CREATE TABLE invoices (
    id text COLLATE "C" NOT NULL, number text, display_name text NOT NULL, customer_name text,
    customer_id text COLLATE "C" NOT NULL, customer_email text, company_name text, customer_tax_id text,
    issued_at timestamptz(3) NOT NULL, ix_created_at timestamptz(3),
    subtotal_cents bigint NOT NULL, discount_cents bigint NOT NULL, tax_cents bigint NOT NULL, tax_percent real,
    total_cents bigint NOT NULL, currency text NOT NULL, status text NOT NULL, ix_sync_state text NOT NULL,
    ix_id bigint, ix_status text,
    PRIMARY KEY (customer_id, id)
  );
  CREATE INDEX invoices_in_order ON invoices (customer_id, issued_at DESC, id DESC);
  CREATE TABLE tokens (hash text PRIMARY KEY);`

export const insertPeerRows = 'INSERT INTO invoices SELECT * FROM json_populate_recordset(NULL::invoices, $1)'
