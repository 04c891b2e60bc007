/** The contract's fields in its order, written down apart from the code that is tested. */

const amountsAndStates = [
  'subtotal_cents',
  'discount_cents',
  'tax_cents',
  'tax_percent',
  'total_cents',
  'currency',
  'status',
  'ix_sync_state',
  'ix_id',
  'ix_status',
]

export const summaryFields = [
  'id',
  'number',
  'display_name',
  'customer_name',
  'customer_id',
  'customer_email',
  'company_name',
  'customer_tax_id',
  'issued_at',
  'ix_created_at',
  ...amountsAndStates,
]

export const detailFields = [
  'id',
  'number',
  'customer_id',
  'display_name',
  'issued_at',
  ...amountsAndStates,
  'lines',
  'lines_source',
  'downloads',
]
