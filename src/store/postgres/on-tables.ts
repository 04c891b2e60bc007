/** Statements of functions that run where rows lie: on the tables as they are, on Citus on those of one shard. */

/** A shard's tables by their names: Citus has nothing to plan then. Of the shard, any customer tells. */
export const findShards = (tables: readonly string[]) => `
    IF p_is_spread THEN
      v_tables := ARRAY(
        SELECT shard_name(t.name::regclass, get_shard_id_for_distribution_column(t.name::regclass, p_customer_id))
        FROM unnest(ARRAY[${tables.map(table => `'fatura.${table}'`).join(', ')}]) WITH ORDINALITY AS t (name, place)
        ORDER BY t.place);
    END IF;`

/** How a statement names a table, and a value. */
interface Names {
  table(name: string): string
  value(name: string): string
}

/** A statement on the tables as they are, and the same on a shard's. Values are variables: their names, without `v_`. */
export function onTables(
  tables: readonly string[],
  values: readonly string[],
  statement: (names: Names) => string,
  into = '',
): string {
  const asTheyAre = statement({ table: name => `fatura.${name}`, value: name => `v_${name}` })
  const ofShard = statement({
    table: name => `%${tables.indexOf(name) + 1}$s`,
    value: name => `$${values.indexOf(name) + 1}`,
  })
  const where = into === '' ? '' : ` INTO ${into}`
  return `IF p_is_spread THEN
      EXECUTE format($sql$${ofShard}$sql$, VARIADIC v_tables)${where} USING ${values.map(name => `v_${name}`).join(', ')};
    ELSE
      ${asTheyAre.trim()}${where};
    END IF;`
}

/** The rows of lists of one length, with each one's place. */
const rowsOf = (columns: readonly string[], value: Names['value']) =>
  `unnest(${columns.map(value).join(', ')}) WITH ORDINALITY AS g (${columns.join(', ')}, place)`

export type Table = (name: string) => string

/** A statement on these columns of what is given, and what was found of each; `g` names them. */
export function onRows(
  tables: readonly string[],
  columns: readonly string[],
  statement: (given: string, table: Table) => string,
  into = '',
): string {
  return onTables(tables, columns, ({ table, value }) => statement(rowsOf(columns, value), table), into)
}
