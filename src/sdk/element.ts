/** Types of `fatura/element` for TypeScript: the element in the DOM, in React 19 and in Vue 3. */
import type { Invoice } from './client.ts'

export interface FaturaInvoicesProperties {
  /** Returns a token. Called at the start, at 80 % of a token's lifetime, and after the service refused a token. */
  fetchToken: (() => Promise<string> | string) | null
  /** The token that is used when `fetchToken` is null. */
  token: string | null
}

export interface FaturaInvoicesAttributes {
  /** Id of the customer. Not needed with the token of a customer link. */
  customer?: string | undefined
  /** The service's address. Needed when the element comes out of a bundle. */
  base?: string | undefined
  lang?: string | undefined
  name?: string | undefined
  logo?: string | undefined
  /** Accent colour as #rrggbb. */
  accent?: string | undefined
  /** Contact for support: an e-mail address, or an address that begins with https://. */
  support?: string | undefined
  /** The company's tax id, printed on statements. */
  'tax-id'?: string | undefined
  /** The company's address in one line, printed beside the tax id. */
  address?: string | undefined
  'time-zone'?: string | undefined
  /** Level of the element's first heading. */
  'heading-level'?: 1 | 2 | 3 | 4 | 5 | 6 | `${1 | 2 | 3 | 4 | 5 | 6}` | undefined
  /** Parts to hide, separated by spaces: header, chart, language, export, pay. */
  hide?: string | undefined
  /** `none` takes the background and the colour scheme of the surrounding page. */
  ground?: 'none' | undefined
  /** `inherit` takes the font of the surrounding page. */
  font?: 'inherit' | undefined
  /** Whether each invoice gets a button to choose it. */
  pick?: boolean | '' | undefined
}

export interface FaturaInvoicesElement extends HTMLElement, FaturaInvoicesProperties {}

export interface FaturaInvoicesEvents {
  'fatura:invoice': CustomEvent<Invoice>
  'fatura:error': CustomEvent<Error>
}

type Props = FaturaInvoicesAttributes & Partial<FaturaInvoicesProperties>

declare global {
  interface HTMLElementTagNameMap {
    'fatura-invoices': FaturaInvoicesElement
  }
  interface HTMLElementEventMap extends FaturaInvoicesEvents {}
}

// React and Vue are optional. Where such a module is missing, TypeScript reports an error here that must be ignored.

// biome-ignore lint/suspicious/noTsIgnore: the error occurs only where the module is missing
/** @ts-ignore */
declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      // biome-ignore lint/suspicious/noTsIgnore: the error occurs only where the module is missing
      /** @ts-ignore */
      'fatura-invoices': Omit<HTMLAttributes<FaturaInvoicesElement>, keyof Props> & Key & Props
    }
    // biome-ignore lint/suspicious/noTsIgnore: the error occurs only where the module is missing
    /** @ts-ignore */
    type Key = ClassAttributes<FaturaInvoicesElement>
  }
}

// biome-ignore lint/suspicious/noTsIgnore: the error occurs only where the module is missing
/** @ts-ignore */
declare module 'vue' {
  interface GlobalComponents {
    'fatura-invoices': new () => { $props: Props }
  }
}
