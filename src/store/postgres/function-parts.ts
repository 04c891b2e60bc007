/**
 * What the functions that read a customer's list have in common.
 *
 * A plan serves customers of every size, so whole tables are never read and indexes give the order: one customer who
 * holds most of a table must not make the planner read all of it for everybody.
 */

/** Of a function that reads rows by their keys alone. Each setting costs 1 to 2 µs a call. */
export const keyAttributes = `
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog SET enable_seqscan = off`

export const attributes = `${keyAttributes} SET plan_cache_mode = force_generic_plan
  SET enable_bitmapscan = off SET enable_sort = off SET jit = off`

export const page = 'OUT total bigint, OUT page bigint, OUT summaries text'
export const filters = `p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text,
  p_from bigint, p_before bigint`
export const given = 'p_customer_id, p_page, p_page_size, p_status, p_ix_status, p_from, p_before'

export const ofDays = `
      i.customer_id = p_customer_id
      AND i.issued_at >= coalesce(p_from, ${Number.MIN_SAFE_INTEGER})
      AND i.issued_at < coalesce(p_before, ${Number.MAX_SAFE_INTEGER})`

/** The rows that match the filters, but for a search. */
export const matching = `${ofDays}
      AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)`

export const inOrder = 'ORDER BY i.issued_at DESC, i.id DESC'

export const clampPage = 'page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size))'

/** The summaries of invoices by their ids, in the order of these. */
export const readSummaries = `
    SELECT string_agg((SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
    INTO summaries FROM unnest(v_ids) k (id)`
