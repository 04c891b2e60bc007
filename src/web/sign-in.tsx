/** For those who come without a link. */
import { useState } from 'preact/hooks'
import { isCustomerId } from '../invoice.ts'
import { openSession, type Session } from './session.ts'
import type { Words } from './words/words.ts'

interface SignInProps {
  words: Words
  /** A token that came without its customer. */
  token: string
  onOpen(session: Session): void
}

export function SignIn({ words, token: given, onOpen }: SignInProps) {
  const [customer, setCustomer] = useState('')
  const [token, setToken] = useState(given)
  const [wrong, setWrong] = useState<'customer' | 'token' | null>(null)

  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    // A token that cannot stand in a header is none.
    const written = token.trim()
    if (!/^[\x21-\x7e]+$/.test(written)) return setWrong('token')
    const session = openSession(written, customer.trim())
    if (customer.trim() !== '' && !isCustomerId(customer.trim())) return setWrong('customer')
    if (session === null) return setWrong('customer')
    onOpen(session)
  }
  return (
    <form class="card sign-in" onSubmit={submit} noValidate>
      <h2>{words.signIn}</h2>
      <p>{words.signInLead}</p>
      <label>
        <span>{words.customer}</span>
        <input
          name="customer"
          value={customer}
          placeholder="cus_…"
          autoComplete="off"
          spellcheck={false}
          aria-invalid={wrong === 'customer'}
          aria-describedby="customer-hint"
          onInput={({ currentTarget }) => setCustomer(currentTarget.value)}
        />
      </label>
      <p id="customer-hint" class={wrong === 'customer' ? 'error' : 'quiet'}>
        {wrong === 'customer' ? words.wrongCustomer : words.customerHint}
      </p>
      <label>
        <span>{words.token}</span>
        <input
          name="token"
          type="password"
          value={token}
          autoComplete="off"
          spellcheck={false}
          aria-invalid={wrong === 'token'}
          aria-describedby="token-hint"
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
      </label>
      <p id="token-hint" class={wrong === 'token' ? 'error' : 'quiet'}>
        {wrong === 'token' ? words.wrongToken : words.tokenHint}
      </p>
      <p class="actions">
        <button type="submit" class="primary">
          {words.signIn}
        </button>
      </p>
    </form>
  )
}
