/** What a place asks of the service. */
import type { ListQuery } from '../client/client.ts'
import type { Place } from './place.ts'

export function listQuery({ filters, page, pageSize }: Place): ListQuery {
  return { ...filters, page, page_size: pageSize }
}

export const listKey = (customer: string, query: ListQuery) => `list ${customer} ${JSON.stringify(query)}`
