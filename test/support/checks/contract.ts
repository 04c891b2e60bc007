/** The contract's fields in its order, written down apart from the code that is tested. */

const amountsAndStates = words(
  'subtotal_cents discount_cents tax_cents tax_percent total_cents currency status ix_sync_state ix_id ix_status',
)
const party = 'customer_name customer_id customer_email company_name customer_tax_id'

export const summaryFields = [
  ...words(`id number display_name ${party} issued_at ix_created_at`),
  ...amountsAndStates,
]
export const detailFields = [
  ...words('id number customer_id display_name issued_at'),
  ...amountsAndStates,
  ...words('lines lines_source downloads'),
]
export const lineFields = words(
  'id description quantity subtotal_cents discount_cents discount_percent unit_amount_cents amount_cents currency',
)

function words(text: string): string[] {
  return text.split(' ')
}
