/** Sends links to an address, if it is a customer's: afterwards, so that whoever asks learns nothing from the time it takes. */
import { createTransport } from 'nodemailer'
import type { Logger } from 'pino'
import { defaultPageSize, type Invoice } from '../../domain/invoice.ts'
import { createLink, type LinkKey } from '../../sdk/link.ts'
import { openOperatorStore, useStore } from '../../store/engines.ts'
import type { ReadStore } from '../../store/store.ts'
import { type MailLink, writeMail } from './write-mail.ts'

export interface MailOptions {
  /** Address of the mail server, as `smtps://user:password@host:465`. */
  smtpUrl: string
  /** The address that mail comes from. */
  from: string
  company: string
  key: LinkKey
  publicUrl: string
  /** The address of the store, with a role that may read its tables. */
  operatorUrl: string
}

/** Mails that wait; a request beyond sends none. */
const maxWaiting = 1_000
const timeoutMs = 20_000

export function createLinkSender(options: MailOptions, store: ReadStore, log: Logger) {
  const { smtpUrl, from, company, key, publicUrl, operatorUrl } = options
  const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs }
  const noFiles = { disableFileAccess: true, disableUrlAccess: true }
  const transport = createTransport({ url: smtpUrl, ...timeouts, ...noFiles })
  let last: Promise<void> = Promise.resolve()
  let waiting = 0

  /** A key that was revoked, or that is not for this customer, makes links that open nothing. */
  async function mayOpen(customerId: string): Promise<boolean> {
    const known = await store.findKey(key.kid)
    if (known === null || known.revoked_at !== null) {
      log.error({ kid: key.kid }, 'CUSTOMER_LINK_KEY is unknown or revoked: nobody can sign in by e-mail')
      return false
    }
    return known.every_customer || store.coversCustomer(key.kid, customerId)
  }

  /** Null for an address that the customer's newest invoice no longer has. */
  async function makeLink(customer: string, email: string): Promise<MailLink | null> {
    const query = { customer_id: customer, page: 1, page_size: defaultPageSize }
    const { summaries } = await store.listInvoices(query)
    const [newest] = JSON.parse(`[${summaries}]`) as Invoice[]
    if (newest?.customer_email?.toLowerCase() !== email || !(await mayOpen(customer))) return null
    return { name: newest.display_name, url: await createLink({ key, publicUrl, customer }) }
  }

  async function send(email: string): Promise<void> {
    const customers = await useStore(openOperatorStore(operatorUrl), found =>
      found.findCustomersByEmail(email),
    )
    const made = await Promise.all(customers.map(customer => makeLink(customer, email)))
    const links = made.filter(link => link !== null)
    if (links.length === 0) return
    await transport.sendMail({
      from: { name: company, address: from },
      to: email,
      ...writeMail(company, links),
    })
    log.info({ customers: customers.length }, 'links were sent by e-mail')
  }

  return {
    /** One mail after the other. */
    queue(email: string): void {
      if (waiting >= maxWaiting) return
      waiting++
      last = last
        .then(() => send(email))
        .catch(err => log.error({ err }, 'links could not be sent by e-mail'))
        .finally(() => {
          waiting--
        })
    },
    /** Once those that wait are sent. */
    async close(): Promise<void> {
      await last
      transport.close()
    },
  }
}
