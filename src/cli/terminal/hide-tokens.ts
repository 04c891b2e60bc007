/** What a token is made of: `fat_`, or what a slip of the hand made of it, then the 12 characters that name it. */
const token = /(fat[^0-9a-z\s]?[0-9a-z]{12})[0-9a-z]+/gi

/** A secret that lost its beginning: letters of both sizes and digits, in one long word as no id or path has. */
const secret = /(?<![0-9A-Za-z])(?=[0-9A-Z]*[a-z])(?=[0-9a-z]*[A-Z])(?=[A-Za-z]*\d)[0-9A-Za-z]{30,}/g

/** A customer link's token, or another JWT; and the private half of a key. */
const jwt = /eyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?/g
const privateHalf = /("d"\s*:\s*")[\w-]+/g

/** What people are told may repeat what they typed; of an access token only the part that names it is repeated. */
export function hideTokens(text: string): string {
  return text.replace(token, '$1…').replace(jwt, '…').replace(privateHalf, '$1…').replace(secret, '…')
}
