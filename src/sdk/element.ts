/** What `fatura/element` is to programs in TypeScript: the element in the DOM, in React 19 and in Vue 3. */
import type { Invoice } from './client.ts'

/** Its own properties. */
export interface FaturaInvoicesProperties {
  /** Called at first, at 80 % of a token's life, and after a refusal. */
  fetchToken: (() => Promise<string> | string) | null
  /** A token, where there is no such function. */
  token: string | null
}

/** Its attributes, by their names. */
export interface FaturaInvoicesAttributes {
  /** Whose invoices; not needed with a customer link's token. */
  customer?: string | undefined
  /** The service's address; needed where the element comes out of a bundle. */
  base?: string | undefined
  lang?: string | undefined
  name?: string | undefined
  logo?: string | undefined
  /** A colour, as #rrggbb. */
  accent?: string | undefined
  /** An e-mail address, or one that begins with https://. */
  support?: string | undefined
  /** The company's tax ID, on printed statements. */
  'tax-id'?: string | undefined
  /** The company's address in one line, beside its tax ID. */
  address?: string | undefined
  'time-zone'?: string | undefined
  /** Level of the first heading. */
  'heading-level'?: 1 | 2 | 3 | 4 | 5 | 6 | `${1 | 2 | 3 | 4 | 5 | 6}` | undefined
  /** Parts to leave out, with spaces between: header, chart, language, export, pay. */
  hide?: string | undefined
  /** The ground and the colour scheme of the page around it. */
  ground?: 'none' | undefined
  /** The font of the page around it. */
  font?: 'inherit' | undefined
  /** Each invoice can be chosen. */
  pick?: boolean | '' | undefined
}

export interface FaturaInvoicesElement extends HTMLElement, FaturaInvoicesProperties {}

/** Events that the element dispatches, by their names. */
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

// Who has neither React nor Vue has none of these modules: an error only there, so that no error may be expected.

// biome-ignore lint/suspicious/noTsIgnore: see above
/** @ts-ignore */
declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      // biome-ignore lint/suspicious/noTsIgnore: see above
      /** @ts-ignore */
      'fatura-invoices': Omit<HTMLAttributes<FaturaInvoicesElement>, keyof Props> & Key & Props
    }
    // biome-ignore lint/suspicious/noTsIgnore: see above
    /** @ts-ignore */
    type Key = ClassAttributes<FaturaInvoicesElement>
  }
}

// biome-ignore lint/suspicious/noTsIgnore: see above
/** @ts-ignore */
declare module 'vue' {
  interface GlobalComponents {
    'fatura-invoices': new () => { $props: Props }
  }
}
