/**
 * What the API's role may do: call these, each of which takes the customer. They run with their owner's rights, blind to
 * what the caller's search path holds, and are planned once a connection.
 */

import { findPlaces, findShort } from './bit-functions.ts'
import { keyAttributes } from './function-parts.ts'
import { keyFunctions } from './key-functions.ts'
import { listCounted, listInvoices } from './list-functions.ts'
import { searchInvoices } from './search-functions.ts'
import { writeFunctions } from './write-functions.ts'

/** None gives a table's own rows: Citus puts another table in the place of one that it takes over. */
const others = `
  CREATE FUNCTION fatura.read_token(p_id text)
  RETURNS TABLE (id text, hash text, every_customer boolean, expires_at bigint, revoked_at bigint) ${keyAttributes} AS $body$
  BEGIN
    RETURN QUERY SELECT t.id, t.hash, t.customers IS NULL, t.expires_at, t.revoked_at
    FROM fatura.tokens t WHERE t.id = p_id;
  END $body$;

  CREATE FUNCTION fatura.read_key(p_id text)
  RETURNS TABLE (kid text, x text, every_customer boolean, revoked_at bigint) ${keyAttributes} AS $body$
  BEGIN
    RETURN QUERY SELECT k.kid, k.x, k.customers IS NULL, k.revoked_at FROM fatura.keys k WHERE k.kid = p_id;
  END $body$;

  CREATE FUNCTION fatura.covers_customer(p_id text, p_customer_id text) RETURNS boolean ${keyAttributes} AS $body$
  BEGIN
    RETURN EXISTS (SELECT FROM fatura.scopes s WHERE s.id = p_id AND s.customer_id = p_customer_id);
  END $body$;

  CREATE FUNCTION fatura.schema_version() RETURNS integer ${keyAttributes} AS $body$
  BEGIN RETURN (SELECT max(m.version) FROM fatura.migrations m); END $body$;

  CREATE FUNCTION fatura.schema_state(OUT version integer, OUT sha256 text, OUT is_rewriting boolean)
  ${keyAttributes} AS $body$
  BEGIN
    SELECT m.version, m.sha256, EXISTS (SELECT FROM fatura.migrations o WHERE o.version > 0 AND o.rewriting IS NOT NULL)
    INTO version, sha256, is_rewriting
    FROM fatura.migrations m ORDER BY m.version DESC LIMIT 1;
  END $body$;`

/** Those that the API calls. */
export const readFunctions = asInstalled([
  keyFunctions,
  listCounted,
  listInvoices,
  findShort,
  findPlaces,
  searchInvoices,
  others,
])

/** All of them, as the newest migration holds them: `npm run functions` writes them there. */
export const functions = `${readFunctions}\n\n${asInstalled([writeFunctions])}`

function asInstalled(sources: readonly string[]): string {
  return sources
    .join('\n')
    .replaceAll('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION')
    .replaceAll(/^ {2}/gm, '')
    .replaceAll(/[ \t]+$/gm, '')
    .trim()
}

/** The line in a migration that the functions follow. */
export const functionsMark = '-- Functions, written here by npm run functions.\n'
