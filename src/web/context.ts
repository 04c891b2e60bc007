/** What every part of the page knows. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { CallOptions, Client, Invoice, Result } from '../client/client.ts'
import type { Format } from './format.ts'
import type { Navigation } from './place.ts'
import type { Session } from './session.ts'
import type { Language, Words } from './words/words.ts'

/** A list that was asked for before anything was drawn. */
export interface EarlyAnswer {
  key: string
  answer: Promise<Result<unknown>>
  /** Told of the waits between its tries, those before included. */
  listen(onWait: NonNullable<CallOptions['onWait']>): void
}

export interface PageContext {
  client: Client
  session: Session
  nav: Navigation
  words: Words
  format: Format
  language: Language
  /** What was shown last, by what was asked: going back shows it at once. */
  shown: Map<string, Result<unknown>>
  early: EarlyAnswer | null
  /** The invoice that was opened last: back in the list, the keyboard goes on from there. */
  opened: { current: string | null }
  /** Hands over the chosen invoice; null when nothing is to be chosen. */
  pick: ((invoice: Invoice) => void) | null
  /** Called when the token is refused: another may come. */
  onRefused: (() => void) | null
  /** Asks for another access; null where the host page sees to it. */
  leave: (() => void) | null
}

export const Page = createContext<PageContext | null>(null)

export function usePage(): PageContext {
  const page = useContext(Page)
  if (page === null) throw new Error('This part is shown outside of the page.')
  return page
}
