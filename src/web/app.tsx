/** The whole page: at its own address, in a frame, or as an element of another page. */
import { useMemo, useRef, useState } from 'preact/hooks'
import { createClient, type Invoice } from '../client/client.ts'
import type { Brand } from '../page-settings.ts'
import { Page } from './context.ts'
import { Button, Switch } from './controls.tsx'
import { createFormat } from './format.ts'
import { InvoiceDetail } from './invoice-detail.tsx'
import { InvoiceList } from './invoice-list.tsx'
import { Loading, Notice } from './notice.tsx'
import { isWhole, type Session } from './session.ts'
import { SignIn } from './sign-in.tsx'
import { Statement } from './statement.tsx'
import styles from './styles.css'
import { type Navigation, useNavigation } from './url-state.ts'
import { type Language, languages, pickLanguage, type Words } from './words.ts'

/** Adopted by the page and by each element. */
export const sheet = new CSSStyleSheet()
sheet.replaceSync(styles)

export interface AppProps {
  /** Null, or without a customer: the sign-in form asks. */
  session: Session | null
  /** The session that a link took the place of; null when there was none. */
  former?: Session | null
  /** The service's address; '' is this page's own. */
  baseUrl: string
  brand: Brand
  /** The host's choice. */
  language?: string | null
  isInUrl: boolean
  canPay: boolean
  pick: ((invoice: Invoice) => void) | null
  /** Null where the host page gives the access. */
  onSession: ((session: Session | null) => void) | null
  onRefused?: (() => void) | null
  /** Whether the host was asked for a token, and failed. */
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
  const main = useRef<HTMLElement & HTMLDivElement>(null)
  // A page has one main part, and around an element that is not this.
  const Main = props.isInUrl ? 'main' : 'div'
  return (
    <div class="fatura" lang={language === 'pt' ? 'pt-PT' : 'en'} style={accentOf(props.brand)}>
      <header class="top row on-screen">
        <Button text={words.skip} class="skip" onClick={() => skipTo(main.current)} />
        <CompanyName {...props.brand} />
        <h1>{words.title}</h1>
        <Switch
          legend={words.language}
          options={Object.entries(languages).map(([code, { name }]) => [code, name] as const)}
          value={language}
          onChange={lang => nav.adjust({ lang })}
        />
        {onSession && session?.customer && <Button text={words.leave} onClick={() => onSession(null)} />}
      </header>
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
  )
}

/** Mixed with so much white, any colour is readable on the dark ground; the service checks it on the light one. */
function accentOf({ accent }: Brand): Record<string, string> {
  if (accent === null || !/^#[\da-f]{6}$/i.test(accent)) return {}
  return { '--fatura-accent': `light-dark(${accent}, color-mix(in srgb, ${accent}, white 60%))` }
}

/** Null for an address that is neither, such as a script. */
function supportOf({ support }: Brand): { href: string; text: string } | null {
  if (support === null) return null
  if (/^[^\s@/:]+@[^\s@/:]+$/.test(support)) return { href: `mailto:${support}`, text: support }
  return /^https?:\/\//.test(support)
    ? { href: support, text: support.replace(/^https?:\/\/|\/$/g, '') }
    : null
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

function NoSession({ words, session, onSession, onRefused, hasNoToken }: AppProps & { words: Words }) {
  if (onSession && session !== null && !isWhole(session.token))
    return (
      <Notice title={words.brokenLink} lead={words.brokenLinkLead} tone="warning">
        <Button text={words.another} onClick={() => onSession(null)} />
      </Notice>
    )
  if (onSession)
    return <SignIn key={session?.token} words={words} token={session?.token ?? ''} onOpen={onSession} />
  if (!hasNoToken) return <Loading words={words} />
  return (
    <Notice title={words.broken} lead={words.brokenLead} tone="warning">
      <Button text={words.again} class="primary" onClick={() => onRefused?.()} />
    </Notice>
  )
}

/** Skips the chart and the filters, where there are some. */
function skipTo(main: HTMLElement | null): void {
  const target = main?.querySelector<HTMLElement>('.bar') ?? main
  target?.focus()
}

function Invoices(props: AppProps & { session: Session; nav: Navigation; language: Language }) {
  const { session, nav, language, baseUrl, onSession, canPay } = props
  const { words } = languages[language]
  const [picked, setPicked] = useState<Invoice | null>(null)
  const { token } = session
  const client = useMemo(() => createClient({ baseUrl, token }), [token, baseUrl])
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
  const known = { client, session, nav, words, format, language, opened, shown, canPay, pick, leave }
  const invoice = session.invoice ?? nav.state.invoice
  return (
    <Page.Provider value={{ ...known, brand: props.brand, onRefused: props.onRefused ?? null }}>
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
