/** `<fatura-invoices customer="cus_…">` shows the page inside another page. The host page sets `fetchToken` (preferred) or `token`. */
import { render } from 'preact'
import type { PageSettings } from '../domain/page-settings.ts'
import type { Invoice } from '../sdk/client.ts'
import type { FaturaInvoicesElement } from '../sdk/element.ts'
import { App, createSheet } from './app.tsx'
import { type FetchToken, HostToken } from './host-token.ts'
import { openSession, type Session } from './session.ts'

export type * from '../sdk/element.ts'

/** Time in which the host page may set `token` or `fetchToken`. After this time an error reports what is missing. */
const patienceMs = 3_000

/** The service sets `faturaPage` before it loads this script. */
const { pay, downloads } = (globalThis as { faturaPage?: Pick<PageSettings, 'pay' | 'downloads'> })
  .faturaPage ?? { pay: true, downloads: { ix: true, payments: true } }

/** HTMLElement does not exist where a server renders pages. There the class is never used. */
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement)

let sheet: CSSStyleSheet | undefined

export class FaturaInvoices extends Base implements FaturaInvoicesElement {
  static observedAttributes = [
    ...['customer', 'base', 'lang', 'pick', 'heading-level', 'hide'],
    ...['name', 'logo', 'accent', 'support', 'tax-id', 'address', 'time-zone'],
  ]

  readonly #root = this.attachShadow({ mode: 'open' })
  readonly #token = new HostToken({
    onChange: () => this.#draw(),
    onFailure: error => this.#report(error),
  })
  #patience: ReturnType<typeof setTimeout> | undefined
  /** The last problem that was reported to the host page. */
  #reported = ''

  constructor() {
    super()
    this.#takeOver('token')
    this.#takeOver('fetchToken')
  }

  get token(): string | null {
    return this.#token.get()
  }
  set token(token: string | null) {
    this.#token.set(token || null)
  }

  get fetchToken(): FetchToken | null {
    return this.#token.getFetch()
  }
  set fetchToken(fetchToken: FetchToken | null) {
    this.#token.setFetch(fetchToken ?? null)
  }

  connectedCallback(): void {
    sheet ??= createSheet()
    this.#root.adoptedStyleSheets = [sheet]
    this.#patience = setTimeout(() => this.#checkHost(), patienceMs)
    this.#token.start()
    this.#draw()
  }
  disconnectedCallback(): void {
    clearTimeout(this.#patience)
    this.#token.stop()
    render(null, this.#root)
  }
  attributeChangedCallback(): void {
    this.#draw()
  }

  /** Applies a property that was set before the element was defined. Such a property would hide the accessor of the class. */
  #takeOver(name: 'token' | 'fetchToken'): void {
    if (!Object.hasOwn(this, name)) return
    const value = this[name]
    delete (this as Partial<Record<typeof name, unknown>>)[name]
    Object.assign(this, { [name]: value })
  }

  /** Reports each missing setting once. */
  #checkHost(): void {
    const problem = this.#findForgotten()
    if (problem !== '' && problem !== this.#reported) this.#report(new Error(problem))
    this.#reported = problem
    this.#draw()
  }

  #findForgotten(): string {
    if (!this.#token.hasSource())
      return "<fatura-invoices> has no token: set its property fetchToken (or token). Frameworks set it once the element is defined: await customElements.whenDefined('fatura-invoices')."
    if (this.#token.get() !== null && this.#session() === null)
      return '<fatura-invoices> does not know whose invoices to show: this token does not name one customer, so the attribute customer must.'
    if (this.getAttribute('base') === null && !isServedByService())
      return '<fatura-invoices> comes out of a bundle: its attribute base must name the service.'
    return ''
  }

  #report(error: Error): void {
    // biome-ignore lint/suspicious/noConsole: who builds the page around looks there first
    console.error(error)
    this.dispatchEvent(new CustomEvent('fatura:error', { detail: error, bubbles: true, composed: true }))
  }

  #session(): Session | null {
    const token = this.#token.get()
    return token === null ? null : openSession(token, this.getAttribute('customer'))
  }

  #draw(): void {
    if (!this.isConnected) return
    const hasFetch = this.#token.getFetch() !== null
    render(
      <App
        session={this.#session()}
        baseUrl={this.getAttribute('base') ?? new URL(import.meta.url).origin}
        brand={{
          name: this.getAttribute('name'),
          logo: this.getAttribute('logo'),
          accent: this.getAttribute('accent'),
          support: this.getAttribute('support'),
          taxId: this.getAttribute('tax-id'),
          address: this.getAttribute('address'),
          timeZone: this.getAttribute('time-zone') ?? 'UTC',
        }}
        language={this.getAttribute('lang')}
        isInUrl={false}
        canPay={pay}
        downloads={downloads}
        headingLevel={Number(this.getAttribute('heading-level')) || 2}
        hidden={new Set(this.getAttribute('hide')?.split(/\s+/))}
        pick={this.hasAttribute('pick') ? invoice => this.#hand(invoice) : null}
        onSession={null}
        onRefused={hasFetch ? () => this.#token.replace() : null}
        askHost={hasFetch ? () => void this.#token.ask() : null}
        hasNoToken={this.#token.hasFailed() || this.#reported !== ''}
      />,
      this.#root,
    )
  }

  #hand(invoice: Invoice): void {
    this.dispatchEvent(
      new CustomEvent('fatura:invoice', { detail: { ...invoice }, bubbles: true, composed: true }),
    )
  }
}

/** Whether the service itself delivered this script. A bundler changes the file name. */
function isServedByService(): boolean {
  return new URL(import.meta.url).pathname.endsWith('/fatura-invoices.js')
}

if (globalThis.customElements && !customElements.get('fatura-invoices'))
  customElements.define('fatura-invoices', FaturaInvoices)
