import { migrationLock } from './schema-version.ts'

/** In milliseconds. An idle session is ended before the patience of those who wait for its locks is. */
const limits = {
  lock_timeout: 30_000,
  idle_in_transaction_session_timeout: 20_000,
  statement_timeout: 15 * 60_000,
}

/** As a session's options. JIT only makes statements slower that are this short. */
export function writeOptions(lockPatienceMs = limits.lock_timeout): string {
  return Object.entries({ ...limits, lock_timeout: lockPatienceMs, jit: 'off' })
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')
}

/**
 * On Citus, each node is written to by one connection, which outlives the transaction: each further one would be a process
 * that begins with nothing planned, and one more to commit in two phases. A node that does not answer is given up, and so is
 * the work for a client that has gone. A wait for a lock is at the other node, which gets the limit, too: Citus
 * passes on the whole message that holds a SET, so these stand in a block of their own.
 */
const onNodes = `DO $body$ BEGIN
    SET LOCAL citus.max_adaptive_executor_pool_size = 1;
    SET LOCAL citus.node_connection_timeout = '5s';
    SET LOCAL client_connection_check_interval = '5s';
    SET LOCAL citus.propagate_set_commands = 'local';
    EXECUTE format('SET LOCAL lock_timeout = %L', current_setting('lock_timeout'));
  END $body$;`

/**
 * Begins a transaction, whose statements read rows by their keys however small a table was when they were planned. What is on the way, such as PgBouncer, may have dropped the session's options: whatever has no
 * limit then gets it for the transaction. The last statement returns the schema's version: it stays so until the end.
 */
export const beginWriting = (isCitus: boolean) => `
  BEGIN;
  SELECT set_config(name, value, true) FROM (VALUES
    ${Object.entries(limits)
      .map(([name, value]) => `('${name}', '${value}')`)
      .join(', ')}) AS given (name, value)
  WHERE current_setting(name) = '0';
  SET LOCAL jit = off;
  SET LOCAL enable_seqscan = off;
  ${isCitus ? onNodes : ''}
  SELECT pg_advisory_xact_lock_shared(${migrationLock});
  SELECT fatura.schema_version() AS version`
