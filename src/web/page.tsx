/** The page at the service's own address. */
import { render } from 'preact'
import type { PageSettings } from '../domain/page-settings.ts'
import type { Invoice } from '../sdk/client.ts'
import { App, createSheet } from './app.tsx'
import { keepSession, type Session, type Taken, takeSession } from './session.ts'
import { languages } from './words.ts'

const settings: PageSettings = JSON.parse(
  document.querySelector<HTMLMetaElement>('meta[name="fatura-page"]')?.content ?? '',
)
const root = document.getElementById('fatura') as HTMLElement

function show({ session, former }: Taken): void {
  render(
    <App
      session={session}
      former={former}
      baseUrl=""
      brand={settings.brand}
      isInUrl
      canPay={settings.pay}
      downloads={settings.downloads}
      signIn={settings.signIn}
      pick={isPicker() ? sendPicked : null}
      onSession={change}
      onLanguage={language => {
        document.documentElement.lang = language === 'pt' ? 'pt-PT' : 'en'
        document.title = [languages[language].words.title, settings.brand.name].filter(Boolean).join(' · ')
      }}
    />,
    root,
  )
}

function change(session: Session | null): void {
  keepSession(session)
  show({ session, former: null })
}

const isPicker = () => new URLSearchParams(location.search).get('pick') === '1' && parent !== window

/** Sends the chosen invoice to the embedding page. The browser delivers it only to an origin that may embed this page. */
function sendPicked(invoice: Invoice): void {
  for (const origin of settings.embedOrigins)
    parent.postMessage({ type: 'fatura:invoice', invoice: { ...invoice } }, origin)
}

document.adoptedStyleSheets = [createSheet()]
show(takeSession())
// A link that is opened in the same tab changes only the fragment, so the page does not load again.
addEventListener('hashchange', () => {
  if (new URLSearchParams(location.hash.slice(1)).has('t')) show(takeSession())
})
