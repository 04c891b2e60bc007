/** `POST /links`: makes customer links for backends that cannot sign them themselves. */
import { maxLinkSeconds } from '../access/link-form.ts'
import { parseObject } from '../access/parse-object.ts'
import { createLinkToken, type LinkKey } from '../customer-link/create-link.ts'
import { isCustomerId, isInvoiceId } from '../invoice.ts'
import { AdminError } from './errors.ts'

export interface LinkSigning {
  key: LinkKey | null
  publicUrl: string | null
}

const members = ['customer', 'invoice', 'ttl']

/** From the text of a body to a link. Throws an AdminError that names what is allowed. */
export async function createLinkFor(body: string, { key, publicUrl }: LinkSigning): Promise<object> {
  const request = readBody(body)
  if (key === null || publicUrl === null)
    throw new AdminError(
      'not_configured',
      'Links cannot be made: start the service with LINK_KEY, which "fatura key add" prints, and PUBLIC_URL.',
    )
  const { token, expires_at } = await createLinkToken({ key, publicUrl, ...request })
  return { url: `${publicUrl}/#t=${token}`, expires_at }
}

function readBody(text: string) {
  const body = parseObject(text)
  if (body === null)
    throw refuse(
      'The body must be a JSON object, such as {"customer":"cus_ana"}, that names no member twice.',
    )
  const unknown = Object.keys(body).find(name => !members.includes(name))
  if (unknown !== undefined) throw refuse(`The body may hold ${members.join(', ')}, and nothing else.`)
  const { customer, invoice, ttl } = body
  if (typeof customer !== 'string' || !isCustomerId(customer))
    throw refuse('customer must be an ID that begins with cus_.')
  if (invoice !== undefined && (typeof invoice !== 'string' || !isInvoiceId(invoice)))
    throw refuse('invoice must be an ID that begins with in_, or be left out.')
  if (ttl !== undefined && !(Number.isInteger(ttl) && Number(ttl) >= 1 && Number(ttl) <= maxLinkSeconds))
    throw refuse(`ttl must be a whole number of seconds from 1 to ${maxLinkSeconds}, or be left out.`)
  return { customer, invoice, ttlSeconds: ttl as number | undefined }
}

function refuse(message: string): AdminError {
  return new AdminError('invalid_request', message)
}
