/** The context that every part of the page shares. */
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
  /** The last answer to each question: going back shows it at once. */
  shown: Map<string, Pick<Result<unknown>, 'data'>>
  /** The invoice that was opened last: back in the list, the keyboard goes on from there. */
  opened: { current: string | null }
  /** Hands over the chosen invoice; null when nothing is to be chosen. */
  pick: ((invoice: Invoice) => void) | null
  /** Asks the host for another token; null where it cannot be asked. */
  onRefused: (() => void) | null
  /** The same, at once, because somebody wants it. */
  askHost: (() => void) | null
  /** Parts that the host leaves out. */
  hidden: ReadonlySet<string>
  canPay: boolean
  downloads: Downloads
  /** Whether the service sends links by e-mail. */
  signIn: boolean
  /** Ends the session; null where the host page gives the access. */
  leave: (() => void) | null
}

/** Every part is shown within a provider. */
export const Page = createContext({} as PageContext)

/** Level of the page's first heading: in a page of others, it is not 1. */
export const HeadingLevel = createContext(1)

export const usePage = () => useContext(Page)
