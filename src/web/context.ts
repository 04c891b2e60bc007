/** The context that all parts of the page share. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Brand, Downloads } from '../domain/page-settings.ts'
import type { Client, Invoice, Result } from '../sdk/client.ts'
import type { Format } from './format.ts'
import type { Session } from './session.ts'
import type { Navigation } from './url-state.ts'
import type { Language, Words } from './words.ts'

export interface PageContext {
  client: Client
  brand: Brand
  session: Session
  /** The newest token of the session. */
  token: { readonly current: string }
  nav: Navigation
  words: Words
  format: Format
  language: Language
  /** The last answer to each request, by key. Going back shows that answer at once. */
  shown: Map<string, Pick<Result<unknown>, 'data'>>
  /** ID of the last opened invoice. After going back to the list, the focus moves to the row of this invoice. */
  opened: { current: string | null }
  /** Passes the chosen invoice to the host page. Null when the page is not a picker. */
  pick: ((invoice: Invoice) => void) | null
  /** Requests another token from the host page after a refusal. Null when the host page cannot be asked. */
  onRefused: (() => void) | null
  /** Requests another token at once, because the user asked for a new attempt. Null when the host page cannot be asked. */
  askHost: (() => void) | null
  hidden: ReadonlySet<string>
  canPay: boolean
  downloads: Downloads
  /** Whether customers can sign in by e-mail. */
  signIn: boolean
  /** Ends the session. Null when the host page provides the token. */
  leave: (() => void) | null
}

/** The default is never used, because every part is rendered inside a provider. */
export const Page = createContext({} as PageContext)

/** Level of the first heading. It is above 1 when another page contains the element. */
export const HeadingLevel = createContext(1)

export const usePage = () => useContext(Page)
