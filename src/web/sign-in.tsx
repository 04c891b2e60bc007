/** The form for a visitor without a link. */
import type { InputHTMLAttributes } from 'preact'
import { useState } from 'preact/hooks'
import { isCustomerId } from '../invoice.ts'
import { Button } from './controls.tsx'
import { openSession, type Session } from './session.ts'
import type { Words } from './words.ts'

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
    const named = customer.trim()
    const session = openSession(written, named)
    if (session === null || (named !== '' && !isCustomerId(named))) return setWrong('customer')
    onOpen(session)
  }
  const field = (name: 'customer' | 'token', hint: string, error: string, input: InputHTMLAttributes) => (
    <>
      <label class="stack">
        <span>{words[name]}</span>
        <input
          name={name}
          autoComplete="off"
          spellcheck={false}
          aria-invalid={wrong === name}
          aria-describedby={`${name}-hint`}
          {...input}
        />
      </label>
      <p id={`${name}-hint`} class={wrong === name ? 'error' : 'quiet'}>
        {wrong === name ? error : hint}
      </p>
    </>
  )
  return (
    <form class="card sign-in stack" onSubmit={submit} noValidate>
      <h2>{words.signIn}</h2>
      <p>{words.signInLead}</p>
      {field('customer', words.customerHint, words.wrongCustomer, {
        value: customer,
        placeholder: 'cus_…',
        onInput: ({ currentTarget }) => setCustomer(currentTarget.value),
      })}
      {field('token', words.tokenHint, words.wrongToken, {
        type: 'password',
        value: token,
        onInput: ({ currentTarget }) => setToken(currentTarget.value),
      })}
      <p class="actions row">
        <Button text={words.signIn} type="submit" class="primary" />
      </p>
    </form>
  )
}
