/** `<fatura-invoices customer="cus_…">`: the page as an element of another one, with a `token`, or better `fetchToken`. */
import { render } from 'preact'
import type { Invoice } from '../client/client.ts'
import { App, sheet } from './app.tsx'
import { expiryOf, openSession } from './session.ts'

/** Time before its expiry at which a token is replaced. */
const aheadMs = 60_000
const longestTimerMs = 2_147_483_647

/** With PAY=off, the service sets it before this script. */
const canPay = (globalThis as { faturaPay?: string }).faturaPay !== 'off'

export class FaturaInvoices extends HTMLElement {
  static observedAttributes = [
    ...['customer', 'base', 'lang', 'pick'],
    ...['name', 'logo', 'accent', 'support', 'time-zone'],
  ]

  readonly #root = this.attachShadow({ mode: 'open' })
  #token: string | null = null
  #fetchToken: (() => Promise<string>) | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #asked = 0
  #hasFailed = false
  #refusedAt = Number.NEGATIVE_INFINITY

  get token(): string | null {
    return this.#token
  }
  set token(token: string | null) {
    this.#token = token
    this.#hasFailed = false
    this.#plan()
    this.#draw()
  }

  get fetchToken(): (() => Promise<string>) | null {
    return this.#fetchToken
  }
  set fetchToken(fetchToken: (() => Promise<string>) | null) {
    this.#fetchToken = fetchToken
    if (this.isConnected) void this.#renew()
  }

  connectedCallback(): void {
    this.#root.adoptedStyleSheets = [sheet]
    if (this.#fetchToken !== null && this.#token === null) void this.#renew()
    this.#plan()
    this.#draw()
  }
  disconnectedCallback(): void {
    clearTimeout(this.#timer)
    render(null, this.#root)
  }
  attributeChangedCallback(): void {
    this.#draw()
  }

  /** A host that fails is asked again; the page stays as long as its token is good. */
  async #renew(): Promise<void> {
    const question = ++this.#asked
    try {
      const token = await this.#fetchToken?.()
      if (question === this.#asked && token) this.token = token
    } catch (error) {
      if (question !== this.#asked) return
      this.#hasFailed = true
      this.#draw()
      this.dispatchEvent(new CustomEvent('fatura:error', { detail: error }))
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => void this.#renew(), 10_000)
    }
  }

  /** A host whose tokens are all refused is not asked all the time. */
  #replace(): void {
    if (performance.now() - this.#refusedAt < 5_000) return
    this.#refusedAt = performance.now()
    void this.#renew()
  }

  #plan(): void {
    clearTimeout(this.#timer)
    const expiry = this.#token === null ? null : expiryOf(this.#token)
    if (expiry === null || this.#fetchToken === null || !this.isConnected) return
    const waitMs = Math.max(1_000, expiry - aheadMs - Date.now())
    this.#timer = setTimeout(() => void this.#renew(), Math.min(waitMs, longestTimerMs))
  }

  #draw(): void {
    if (!this.isConnected) return
    render(
      <App
        session={this.#token === null ? null : openSession(this.#token, this.getAttribute('customer'))}
        baseUrl={this.getAttribute('base') ?? new URL(import.meta.url).origin}
        brand={{
          name: this.getAttribute('name'),
          logo: this.getAttribute('logo'),
          accent: this.getAttribute('accent'),
          support: this.getAttribute('support'),
          timeZone: this.getAttribute('time-zone') ?? 'UTC',
        }}
        language={this.getAttribute('lang')}
        isInUrl={false}
        canPay={canPay}
        pick={this.hasAttribute('pick') ? invoice => this.#hand(invoice) : null}
        onSession={null}
        onRefused={this.#fetchToken === null ? null : () => this.#replace()}
        hasNoToken={this.#hasFailed || (this.#token === null && this.#fetchToken === null)}
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

if (!customElements.get('fatura-invoices')) customElements.define('fatura-invoices', FaturaInvoices)
