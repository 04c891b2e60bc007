/** Matches a token: `fat_` (also when `_` is mistyped or missing), 12 characters of the token's id, and the secret. */
const token = /(fat[^0-9a-z\s]?[0-9a-z]{12})[0-9a-z]+/gi

/**
 * Matches a secret without its beginning: at least 30 letters and digits in a row, with upper case, lower case and a digit. Ids and paths
 * do not look like this.
 */
const secret = /(?<![0-9A-Za-z])(?=[0-9A-Z]*[a-z])(?=[0-9a-z]*[A-Z])(?=[A-Za-z]*\d)[0-9A-Za-z]{30,}/g

/** Matches a JWT, such as a customer link's token. `privateHalf` matches the private member of a JWK. */
const jwt = /eyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?/g
const privateHalf = /("d"\s*:\s*")[\w-]+/g

/**
 * Matches a word that may be the private half of a key, also when it is cut. Such a word is hidden when its characters often change between
 * upper case, lower case and digits.
 */
const maybeHalf = /(?<![\w-])-{0,2}[\w-]{40,43}(?![\w-])/g
const changeOfKind = /(?=[a-z][A-Z\d]|[A-Z][a-z\d]|\d[A-Za-z])/g

/** Matches Stripe's keys and webhook secrets. */
const stripe = /\b((?:[sr]k_(?:live|test)|whsec)_)\w+/g

/** Matches the value of an unknown option, for example `--stripe-api-key=…`, because the value may be a secret. */
const givenToNoOption = /(unknown option '-[^'=]*=)[^']*/g

/**
 * Matches the user and password of an address. A `file:` address has neither, but its path may contain `@`, for example `@fastify/cors`.
 */
const login = /(?<!file):\/\/[^\s'"]*@/g

/** Removes secrets from a message, which may repeat typed text. The id of an access token stays visible. */
export function hideSecrets(text: string): string {
  return (
    text
      .replace(givenToNoOption, '$1…')
      .replace(login, '://…@')
      // A key half may contain the letters `fat`, so key halves are hidden before tokens.
      .replace(maybeHalf, word => ((word.match(changeOfKind)?.length ?? 0) < 8 ? word : '…'))
      .replace(token, '$1…')
      .replace(jwt, '…')
      .replace(privateHalf, '$1…')
      .replace(stripe, '$1…')
      .replace(secret, '…')
  )
}
