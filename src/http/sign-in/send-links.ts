/**
 * Sends links to an address if it is a customer's. The mail is sent after the answer, so that the duration of the
 * request reveals nothing.
 */
import { createTransport } from 'nodemailer'
import type { Logger } from 'pino'
import type { Invoice } from '../../domain/invoice.ts'
import { defaultPageSize } from '../../domain/list-query.ts'
import { createLink, type LinkKey } from '../../sdk/link.ts'
import { openOperatorStore, useStore } from '../../store/engines.ts'
import type { ReadStore } from '../../store/store.ts'
import { type MailLink, writeMail } from './write-mail.ts'

export interface MailOptions {
  /** URL of the mail server, for example `smtps://user:password@host:465`. */
  smtpUrl: string
  from: string
  company: string
  key: LinkKey
  publicUrl: string
  /** URL of the store, with a role that may read its tables. */
  operatorUrl: string
}

/** Maximum number of waiting mails. Further requests send no mail. */
const maxWaiting = 1_000
const timeoutMs = 20_000

export class LinkSender {
  private readonly options: MailOptions
  private readonly store: ReadStore
  private readonly log: Logger
  private readonly transport: ReturnType<typeof openTransport>
  private last: Promise<void> = Promise.resolve()
  private waiting = 0

  constructor(options: MailOptions, store: ReadStore, log: Logger) {
    this.options = options
    this.store = store
    this.log = log
    this.transport = openTransport(options.smtpUrl)
  }

  /** Mails are sent one after the other. */
  queue(email: string): void {
    const { log } = this
    if (this.waiting >= maxWaiting) return
    this.waiting++
    this.last = this.last
      .then(() => this.send(email))
      .catch(err => log.error({ err }, 'links could not be sent by e-mail'))
      .finally(() => {
        this.waiting--
      })
  }

  async close(): Promise<void> {
    await this.last
    this.transport.close()
  }

  private async send(email: string): Promise<void> {
    const { log } = this
    const { operatorUrl, company, from } = this.options
    const customers = await useStore(openOperatorStore(operatorUrl), found =>
      found.findCustomersByEmail(email),
    )
    const made = await Promise.all(customers.map(customer => this.makeLink(customer, email)))
    const links = made.filter(link => link !== null)
    if (links.length === 0) return
    const mail = { from: { name: company, address: from }, to: email, ...writeMail(company, links) }
    await this.transport.sendMail(mail).catch(error => {
      throw withoutAddresses(error)
    })
    log.info({ customers: customers.length }, 'links were sent by e-mail')
  }

  /** Null when the customer's newest invoice has another address, or when the link would open nothing. */
  private async makeLink(customer: string, email: string): Promise<MailLink | null> {
    const { key, publicUrl } = this.options
    const query = { customer_id: customer, page: 1, page_size: defaultPageSize }
    const { summaries } = await this.store.listInvoices(query)
    const [newest] = JSON.parse(`[${summaries}]`) as Invoice[]
    if (newest?.customer_email?.toLowerCase() !== email || !(await this.mayOpen(customer))) return null
    return { name: newest.display_name, url: await createLink({ key, publicUrl, customer }) }
  }

  /**
   * Whether links of the key open the customer's invoices. A revoked key, or one for other customers, makes links
   * that open nothing.
   */
  private async mayOpen(customerId: string): Promise<boolean> {
    const { log, store } = this
    const { kid } = this.options.key
    const known = await store.findKey(kid)
    if (known === null || known.revoked_at !== null) {
      log.error({ kid }, 'CUSTOMER_LINK_KEY is unknown or revoked, so nobody can sign in by e-mail')
      return false
    }
    return known.every_customer || store.coversCustomer(kid, customerId)
  }
}

/** Returns an error that can be logged. A mail server may repeat the address of the customer in its answer. */
function withoutAddresses({ message, stack = '' }: Error): Error {
  const clean = message.replace(/[^\s<>]+@[^\s<>]+/g, '…')
  return Object.assign(new Error(clean), { stack: stack.replace(message, () => clean) })
}

function openTransport(url: string) {
  const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs }
  return createTransport({ url, ...timeouts, disableFileAccess: true, disableUrlAccess: true })
}
