/** What the statements that every engine shares run on. */
export interface Db {
  /**
   * `$1`, `$2` … stand for the values, as PostgreSQL writes them. Tables are named with the schema, as in
   * `fatura.streams`; an engine without schemas leaves it out.
   */
  query<Row extends object>(sql: string, ...values: (string | number | null)[]): Promise<Row[]>
  /** What keeps a row that was read from being changed by others until the transaction's end; empty where nobody else can. */
  keepRow: string
  /** A token's column `customers` as JSON text, under its own name. */
  customersAsJson: string
  /** The value of that column from JSON text. */
  customersFromJson(value: string): string
}
