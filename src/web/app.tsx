/** The page as a whole, wherever it stands: at its own address, in a frame, or as an element of another page. */
import { useMemo, useRef, useState } from 'preact/hooks'
import { type Client, createClient, type Invoice } from '../client/client.ts'
import { type EarlyAnswer, Page } from './context.ts'
import { createFormat } from './format.ts'
import { InvoiceDetail } from './invoice-detail.tsx'
import { InvoiceList } from './invoice-list.tsx'
import { Bones, Notice } from './notice.tsx'
import { type Navigation, useNavigation } from './place.ts'
import { isWhole, type Session } from './session.ts'
import { SignIn } from './sign-in.tsx'
import { Statement } from './statement.tsx'
import { type Language, languages, pickLanguage, type Words } from './words/words.ts'

export interface AppProps {
  /** Null, or without a customer: somebody has to say. */
  session: Session | null
  /** What was open before a link took its place; null when nothing else was. */
  former?: Session | null
  /** Where the service is; '' is this page's own address. */
  baseUrl: string
  /** One that has been asked something already. */
  client?: Client
  early?: EarlyAnswer | null
  /** What the host asks for, if anything. */
  language?: string | null
  isInUrl: boolean
  pick: ((invoice: Invoice) => void) | null
  /** Null where the host page gives the access. */
  onSession: ((session: Session | null) => void) | null
  /** Where the host gives the access: asks it for another one. */
  onRefused?: (() => void) | null
  /** The host was asked for an access, and failed. */
  hasNoToken?: boolean
  onLanguage?(language: Language): void
}

export function App(props: AppProps) {
  const nav = useNavigation(props.isInUrl)
  const language = pickLanguage(nav.place.lang, props.language, ...navigator.languages)
  const { words } = languages[language]
  props.onLanguage?.(language)
  const { session, former = null, onSession } = props
  const main = useRef<HTMLElement & HTMLDivElement>(null)
  // A page has one main part, and around an element that is not this.
  const Main = props.isInUrl ? 'main' : 'div'
  return (
    <div class="fatura" lang={language === 'pt' ? 'pt-PT' : 'en'}>
      <header class="top">
        <button type="button" class="skip" onClick={() => skipTo(main.current)}>
          {words.skip}
        </button>
        <h1>{words.title}</h1>
        <LanguageSwitch nav={nav} language={language} />
        {onSession && session?.customer && (
          <button type="button" onClick={() => onSession(null)}>
            {words.leave}
          </button>
        )}
      </header>
      <Main class="main" ref={main} tabIndex={-1}>
        {onSession && former && (
          <p class="picking" role="status">
            {session?.customer && words.replaced}{' '}
            <button type="button" onClick={() => onSession(former)}>
              {words.former}
            </button>
          </p>
        )}
        {session?.customer ? (
          <Invoices
            key={session.customer + session.invoice}
            {...props}
            session={session}
            nav={nav}
            language={language}
          />
        ) : (
          <NoSession {...props} words={words} />
        )}
      </Main>
    </div>
  )
}

function NoSession({
  words,
  session,
  onSession,
  onRefused,
  hasNoToken = false,
}: AppProps & { words: Words }) {
  if (onSession && session !== null && !isWhole(session.token))
    return (
      <Notice title={words.brokenLink} lead={words.brokenLinkLead} tone="warning">
        <p class="actions">
          <button type="button" onClick={() => onSession(null)}>
            {words.another}
          </button>
        </p>
      </Notice>
    )
  if (onSession)
    return <SignIn key={session?.token} words={words} token={session?.token ?? ''} onOpen={onSession} />
  if (!hasNoToken) return <Bones words={words} />
  return (
    <Notice title={words.broken} lead={words.brokenLead} tone="warning">
      <p class="actions">
        <button type="button" class="primary" onClick={() => onRefused?.()}>
          {words.again}
        </button>
      </p>
    </Notice>
  )
}

/** Past the chart and the filters, where there are some. */
function skipTo(main: HTMLElement | null): void {
  const target = main?.querySelector<HTMLElement>('.bar') ?? main
  target?.focus()
}

type InvoicesProps = AppProps & { session: Session; nav: Navigation; language: Language }

function Invoices(props: InvoicesProps) {
  const { session, nav, language, baseUrl, early = null, onSession } = props
  const { words } = languages[language]
  const [picked, setPicked] = useState<Invoice | null>(null)
  const { token } = session
  const client = useMemo(
    () => props.client ?? createClient({ baseUrl, token }),
    [token, baseUrl, props.client],
  )
  const shownBefore = useMemo(() => new Map(), [])
  const opened = useRef<string | null>(null)
  const format = useMemo(() => createFormat(language), [language])
  const pick =
    props.pick &&
    ((invoice: Invoice) => {
      props.pick?.(invoice)
      setPicked(invoice)
    })
  const leave = onSession && (() => onSession(null))
  const { onRefused = null } = props
  const known = { client, session, nav, words, format, language, early, opened, shown: shownBefore }
  const page = { ...known, pick, leave, onRefused }
  const shown = session.invoice ?? nav.place.invoice
  return (
    <Page.Provider value={page}>
      {pick && (
        <p class="picking" role="status">
          {picked ? words.picked(picked.number ?? picked.id) : words.pickLead}
        </p>
      )}
      {shown !== null ? (
        <InvoiceDetail id={shown} />
      ) : nav.place.isStatement ? (
        <Statement />
      ) : (
        <InvoiceList />
      )}
    </Page.Provider>
  )
}

function LanguageSwitch({ nav, language }: { nav: Navigation; language: Language }) {
  const { words } = languages[language]
  return (
    <fieldset class="languages">
      <legend class="hidden">{words.language}</legend>
      {Object.entries(languages).map(([code, { name }]) => (
        <button
          type="button"
          key={code}
          lang={code}
          title={name}
          aria-label={`${code.toUpperCase()} ${name}`}
          aria-pressed={code === language}
          onClick={() => nav.adjust({ lang: code })}
        >
          {code.toUpperCase()}
        </button>
      ))}
    </fieldset>
  )
}
