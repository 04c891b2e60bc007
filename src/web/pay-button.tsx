/** Opens the payment platform's page in a new tab. The billing page shows the payment as soon as the service knows about it. */
import { useState } from 'preact/hooks'
import { FaturaError } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Button } from './controls.tsx'

/** The request gives up after this time, because the new tab stays empty while it waits. */
const timeoutMs = 15_000

type State =
  | { step: 'idle' | 'loading' | 'notPayable' | 'payFailed' }
  /** The browser blocked the new tab. A link to the payment page is shown instead. */
  | { step: 'linked'; url: string }

/** An invoice from a list, a detail view or the balance. */
interface Payable {
  id: string
  number: string | null
  payment?: { payable: boolean }
  can_be_paid?: boolean
}

export const isPayable = ({ payment, can_be_paid }: Payable) => payment?.payable ?? can_be_paid === true

export function PayButton({ invoice }: { invoice: Payable }) {
  const { client, session, words, canPay } = usePage()
  const [state, setState] = useState<State>({ step: 'idle' })
  if (!canPay || !isPayable(invoice)) return null

  async function pay(): Promise<void> {
    // The tab opens during the click, because browsers block tabs that are opened later.
    const tab = window.open('about:blank', '_blank')
    setState({ step: 'loading' })
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      const { url } = await client.paymentPage(session.customer, invoice.id, { signal })
      if (tab === null) return setState({ step: 'linked', url })
      tab.opener = null
      tab.location.replace(url)
      setState({ step: 'idle' })
    } catch (error) {
      tab?.close()
      const isOver = error instanceof FaturaError && error.code === 'not_payable'
      setState({ step: isOver ? 'notPayable' : 'payFailed' })
    }
  }

  return (
    <span class="pay">
      {state.step === 'linked' ? (
        <a href={state.url} target="_blank" rel="noopener noreferrer">
          {words.payOpen}
        </a>
      ) : (
        <Button
          text={words.pay}
          class="primary"
          aria-label={words.payOf(invoice.number ?? invoice.id)}
          disabled={state.step === 'loading'}
          onClick={pay}
        />
      )}
      <span class="small" role="status">
        {(state.step === 'notPayable' || state.step === 'payFailed') && words[state.step]}
      </span>
    </span>
  )
}
