/** Which of a customer's invoices follow what changed of the customer. Pure. */

/** An invoice shows these as they are until it is finalized, and then keeps them. */
const draftsFollow = ['name', 'email', 'individual_name', 'tax_ids']
/** Every invoice shows these as they are now. */
const allFollow = ['business_name']

/** `previous` is what an event says of the values before; an event that says nothing of them may mean any. */
export function invoicesToFollow(type: string, previous: unknown): 'all' | 'draft' | 'none' {
  // A deleted customer has no names: what is stored stays.
  if (type !== 'customer.updated') return 'draft'
  if (typeof previous !== 'object' || previous === null) return 'all'
  const changed = Object.keys(previous)
  if (changed.some(name => allFollow.includes(name))) return 'all'
  return changed.some(name => draftsFollow.includes(name)) ? 'draft' : 'none'
}
