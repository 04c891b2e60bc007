/** Requests a sign-in link by e-mail. The answer does not reveal whether the address belongs to a customer. */
import { useState } from 'preact/hooks'
import { Button } from './controls.tsx'
import type { Words } from './words.ts'

type Step = 'idle' | 'sending' | 'linkSent' | 'linkLimited' | 'linkFailed' | 'wrongEmail'

export function EmailSignIn({ words }: { words: Words }) {
  const [email, setEmail] = useState('')
  const [step, setStep] = useState<Step>('idle')

  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    setStep('sending')
    const headers = { 'content-type': 'application/json' }
    const status = await fetch('/sign-in', { method: 'POST', headers, body: JSON.stringify({ email }) }).then(
      answer => answer.status,
      () => 0,
    )
    setStep(steps[status] ?? 'linkFailed')
  }
  return (
    <form class="email-sign-in stack" onSubmit={submit} noValidate>
      <label class="stack">
        <span>{words.email}</span>
        <input
          name="email"
          type="email"
          autoComplete="email"
          value={email}
          aria-invalid={step === 'wrongEmail'}
          aria-describedby="email-told"
          onInput={({ currentTarget }) => setEmail(currentTarget.value)}
        />
      </label>
      <p id="email-told" class={step === 'wrongEmail' ? 'error' : 'quiet'} role="status">
        {step === 'idle' || step === 'sending' ? words.emailHint : words[step]}
      </p>
      <p class="actions row">
        <Button text={words.sendLink} type="submit" class="primary" disabled={step === 'sending'} />
      </p>
    </form>
  )
}

const steps: Record<number, Step> = { 202: 'linkSent', 400: 'wrongEmail', 429: 'linkLimited' }
