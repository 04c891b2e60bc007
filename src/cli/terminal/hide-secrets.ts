/** A token: `fat_`, or a slip of the hand for it, then the 12 characters that name it, then the secret. */
const token = /(fat[^0-9a-z\s]?[0-9a-z]{12})[0-9a-z]+/gi

/** A secret that lost its beginning: letters of both sizes and digits, in one long word as no id or path has. */
const secret = /(?<![0-9A-Za-z])(?=[0-9A-Z]*[a-z])(?=[0-9a-z]*[A-Z])(?=[A-Za-z]*\d)[0-9A-Za-z]{30,}/g

/** A customer link's token, or another JWT; and the private half of a key, as it is written beside the other one. */
const jwt = /eyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?/g
const privateHalf = /("d"\s*:\s*")[\w-]+/g

/** The private half by itself, whole or cut: no name changes its kind of letters at every second place. */
const maybeHalf = /(?<![\w-])-{0,2}[\w-]{40,43}(?![\w-])/g
const changeOfKind = /(?=[a-z][A-Z\d]|[A-Z][a-z\d]|\d[A-Za-z])/g

/** Stripe's keys, and secrets of webhooks. */
const stripe = /\b((?:[sr]k_(?:live|test)|whsec)_)\w+/g

/** The value of an option that there is not, as in --stripe-api-key=…: it may be anything. */
const givenToNoOption = /(unknown option '-[^'=]*=)[^']*/g

/** A user and a password in an address. A file's has none, but may lead through a package such as @fastify/cors. */
const login = /(?<!file):\/\/[^\s'"]*@/g

/** For messages, which may repeat typed text but no secret; an access token keeps the part that names it. */
export function hideSecrets(text: string): string {
  return (
    text
      .replace(givenToNoOption, '$1…')
      .replace(login, '://…@')
      // Before tokens: a half may hold the letters that one begins with.
      .replace(maybeHalf, word => ((word.match(changeOfKind)?.length ?? 0) < 8 ? word : '…'))
      .replace(token, '$1…')
      .replace(jwt, '…')
      .replace(privateHalf, '$1…')
      .replace(stripe, '$1…')
      .replace(secret, '…')
  )
}
