/** One line of use for each command, at the end of its help. `copy` and `export` have their own. */
export const examples: Readonly<Record<string, string>> = {
  demo: 'fatura demo',
  serve: 'fatura serve --port 8080 --workers auto',
  sync: 'fatura sync --once',
  up: 'STRIPE_API_KEY=rk_live_… fatura up --webhooks 4011',
  status: 'fatura status',
  'account show': 'fatura account show',
  'account change': 'fatura account change --confirm',
  doctor: 'fatura doctor --sample 100',
  reconcile: 'fatura reconcile --month 2026-10 --timezone Europe/Lisbon --format csv > differences.csv',
  explain: 'fatura explain in_1pTrQz3RDco2wQ3rcB00005e',
  import: 'fatura import invoices.ndjson',
  'token create':
    'fatura token create --customer cus_ana --customer cus_rui --name billing-page --expires 30d',
  'token list': 'fatura token list',
  'token revoke': 'fatura token revoke fat_BoaxW8AbZ71w',
  migrate: 'fatura migrate --database-url postgres://fatura_owner@127.0.0.1:5432/fatura',
  openapi: 'fatura openapi > openapi.json',
  sandbox: 'fatura sandbox --invoices 2000 --differences 11',
}
