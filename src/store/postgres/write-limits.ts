import { migrationLock } from './schema.ts'

/** Time limits in milliseconds. An idle session ends before writers give up waiting for its locks. */
const limits = {
  lock_timeout: 30_000,
  idle_in_transaction_session_timeout: 20_000,
  statement_timeout: 15 * 60_000,
}

/** Returns the limits as session options. JIT is off, because it only slows down such short statements. */
export function writeOptions(lockPatienceMs = limits.lock_timeout): string {
  return Object.entries({ ...limits, lock_timeout: lockPatienceMs, jit: 'off' })
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')
}

/**
 * Settings of a transaction on Citus's nodes.
 * One connection per node is enough, and it outlives the transaction. A second connection would start a new process, and would have to be
 * committed too.
 * A node that does not answer is given up, and so is work for a client that has gone.
 * The wait for a lock happens on the other node, which therefore gets the same time limit.
 * These statements stand in a block of their own, because Citus sends the whole message that contains a SET to its nodes.
 */
const onNodes = `DO $body$ BEGIN
    SET LOCAL citus.max_adaptive_executor_pool_size = 1;
    SET LOCAL citus.node_connection_timeout = '5s';
    SET LOCAL client_connection_check_interval = '5s';
    SET LOCAL citus.propagate_set_commands = 'local';
    EXECUTE format('SET LOCAL lock_timeout = %L', current_setting('lock_timeout'));
  END $body$;`

/**
 * Begins a transaction. Its statements read rows by their keys, even if a table was small when they were planned. A pooler such as
 * PgBouncer may have dropped the session's options, so limits that are missing are set for the transaction. The last statement returns the
 * schema's version, which cannot change before the transaction ends.
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
