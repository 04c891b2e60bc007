/** The whole page. It is shown at its own address, in a frame, or as an element of another page. */
import { useMemo, useRef, useState } from 'preact/hooks'
import type { Brand, Downloads } from '../domain/page-settings.ts'
import { createClient, type Invoice } from '../sdk/client.ts'
import { HeadingLevel, Page } from './context.ts'
import { Button, Heading, Switch } from './controls.tsx'
import { EmailSignIn } from './email-sign-in.tsx'
import { createFormat } from './format.ts'
import { InvoiceDetail } from './invoice-detail.tsx'
import { InvoiceList } from './invoice-list.tsx'
import { Loading, Notice } from './notice.tsx'
import { isWhole, type Session } from './session.ts'
import { Statement } from './statement.tsx'
import styles from './styles.css'
import { supportOf } from './support.ts'
import { type Navigation, useNavigation } from './url-state.ts'
import { type Language, languages, pickLanguage, type Words } from './words.ts'

/** Creates the style sheet that the page and each element adopt. */
export function createSheet(): CSSStyleSheet {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(styles)
  return sheet
}

export type Part = 'header' | 'chart' | 'language' | 'export' | 'pay'

export interface AppProps {
  /** Null before a customer is known. The page then shows the sign-in form or a notice. */
  session: Session | null
  /** The previous session, when a link replaced it. Null without a previous session. */
  former?: Session | null
  /** Address of the service. An empty text means the page's own address. */
  baseUrl: string
  brand: Brand
  /** Language chosen by the host page. */
  language?: string | null
  isInUrl: boolean
  canPay: boolean
  downloads: Downloads
  /** Whether customers can sign in by e-mail. */
  signIn?: boolean
  pick: ((invoice: Invoice) => void) | null
  /** Null when the host page provides the token, because the page then cannot change the session. */
  onSession: ((session: Session | null) => void) | null
  onRefused?: (() => void) | null
  /** Requests a new token from the host page at once. Null when the host page cannot be asked. */
  askHost?: (() => void) | null
  headingLevel?: number
  hidden?: ReadonlySet<string>
  /** Whether the host page gave no usable token. */
  hasNoToken?: boolean
  onLanguage?(language: Language): void
}

export function App(props: AppProps) {
  const nav = useNavigation(props.isInUrl)
  const language = pickLanguage(nav.state.lang, props.language, ...navigator.languages)
  const { words } = languages[language]
  props.onLanguage?.(language)
  const { session, former = null, onSession } = props
  const support = supportOf(props.brand)
  const { hidden = noParts } = props
  const isShown = (part: Part) => !hidden.has(part)
  const main = useRef<HTMLElement & HTMLDivElement>(null)
  // A page has exactly one `main`. An element is part of another page, which has its own `main`.
  const Main = props.isInUrl ? 'main' : 'div'
  const languageSwitch = isShown('language') && (
    <Switch
      legend={words.language}
      options={Object.entries(languages).map(([code, { name }]) => [code, name] as const)}
      value={language}
      onChange={lang => nav.adjust({ lang })}
    />
  )
  return (
    <HeadingLevel.Provider value={props.headingLevel ?? 1}>
      <div class="fatura" lang={language === 'pt' ? 'pt-PT' : 'en'} style={accentOf(props.brand)}>
        {isShown('header') && (
          <header class="top row on-screen">
            <Button text={words.skip} class="skip" onClick={() => skipTo(main.current)} />
            <CompanyName {...props.brand} />
            <Heading rank={1}>{words.title}</Heading>
            {languageSwitch}
            {onSession && session?.customer && <Button text={words.leave} onClick={() => onSession(null)} />}
          </header>
        )}
        <Main class="main stack" ref={main} tabIndex={-1}>
          {onSession && former && (
            <p class="picking strong" role="status">
              {session?.customer && words.replaced}{' '}
              <Button text={words.former} onClick={() => onSession(former)} />
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
        {support && (
          <footer class="support small">
            {words.support} <a href={support.href}>{support.text}</a>
          </footer>
        )}
      </div>
    </HeadingLevel.Provider>
  )
}

const noParts: ReadonlySet<string> = new Set()

/**
 * Lightens the accent colour for a dark background, so that any colour is readable there. The service has checked the colour on a light
 * background.
 */
function accentOf({ accent }: Brand): Record<string, string> {
  if (accent === null || !/^#[\da-f]{6}$/i.test(accent)) return {}
  return { '--fatura-accent': `light-dark(${accent}, color-mix(in srgb, ${accent}, white 60%))` }
}

function CompanyName({ name, logo }: Brand) {
  if (name === null && logo === null) return null
  return (
    <p class="company row strong">
      {logo && <img src={logo} alt="" />}
      {name}
    </p>
  )
}

function NoSession({ words, session, onSession, askHost, hasNoToken, signIn }: AppProps & { words: Words }) {
  if (onSession && session !== null && !isWhole(session.token))
    return (
      <Notice
        title={words.brokenLink}
        lead={signIn ? words.newLinkLead : words.brokenLinkLead}
        tone="warning"
      >
        {signIn && <EmailSignIn words={words} />}
      </Notice>
    )
  if (onSession && signIn && session === null)
    return (
      <section class="card sign-in stack">
        <Heading rank={2}>{words.signIn}</Heading>
        <p>{words.emailLead}</p>
        <EmailSignIn words={words} />
      </section>
    )
  // Customers sign in through a link. The page never asks for a customer's ID.
  if (onSession) return <Notice title={words.signIn} lead={words.openLinkLead} />
  if (!hasNoToken) return <Loading words={words} />
  return (
    <Notice title={words.noToken} lead={words.noTokenLead} tone="warning">
      {askHost && <Button text={words.again} class="primary" onClick={askHost} />}
    </Notice>
  )
}

/** Moves the focus past the chart and the filters. */
function skipTo(main: HTMLElement | null): void {
  const target = main?.querySelector<HTMLElement>('.bar') ?? main
  target?.focus()
}

const fetchWith =
  (token: { current: string }): typeof fetch =>
  (address, init) =>
    fetch(address, { ...init, headers: { ...init?.headers, authorization: `Bearer ${token.current}` } })

function Invoices(props: AppProps & { session: Session; nav: Navigation; language: Language }) {
  const { session, nav, language, baseUrl, onSession, canPay, downloads } = props
  const { words } = languages[language]
  const [picked, setPicked] = useState<Invoice | null>(null)
  const token = useRef(session.token)
  token.current = session.token
  // A renewed token does not reload the page. Each request uses the newest token.
  const client = useMemo(
    () => createClient({ baseUrl, token: token.current, fetch: fetchWith(token) }),
    [baseUrl],
  )
  const shown = useMemo(() => new Map(), [])
  const opened = useRef<string | null>(null)
  const format = useMemo(() => createFormat(language), [language])
  const pick =
    props.pick &&
    ((invoice: Invoice) => {
      props.pick?.(invoice)
      setPicked(invoice)
    })
  const leave = onSession && (() => onSession(null))
  const { hidden = noParts, onRefused = null, askHost = null, signIn = false } = props
  const known = {
    client,
    session,
    token,
    nav,
    words,
    format,
    language,
    opened,
    shown,
    downloads,
    pick,
    leave,
  }
  const hosted = { hidden, onRefused, askHost, signIn, canPay: canPay && !hidden.has('pay') }
  const invoice = session.invoice ?? nav.state.invoice
  return (
    <Page.Provider value={{ ...known, ...hosted, brand: props.brand }}>
      {pick && (
        <p class="picking strong" role="status">
          {picked ? words.picked(picked.number ?? picked.id) : words.pickLead}
        </p>
      )}
      {invoice !== null ? (
        <InvoiceDetail id={invoice} />
      ) : nav.state.isStatement ? (
        <Statement key={JSON.stringify(nav.state.filters)} />
      ) : (
        <InvoiceList />
      )}
    </Page.Provider>
  )
}
