/** A certificate for localhost that is its own authority, made again for each run: no private key lies in the repository. */
import { generateKeyPairSync, sign } from 'node:crypto'

export function createCertificate(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(der(0x06, '2a8648ce3d040302'))
  const name = sequence(der(0x31, sequence(der(0x06, '550403'), der(0x0c, Buffer.from('localhost')))))
  const alternativeName = sequence(
    der(0x06, '551d11'),
    der(0x04, sequence(der(0x82, Buffer.from('localhost')))),
  )
  const body = sequence(
    der(0xa0, der(0x02, '02')),
    der(0x02, '01'),
    ecdsaWithSha256,
    name,
    sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('491231235959Z'))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(alternativeName)),
  )
  const signature = sign('sha256', body, privateKey)
  const whole = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${whole.toString('base64')}\n-----END CERTIFICATE-----\n`,
  }
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts)
}

/** Tag, length, value; a string is hexadecimal. */
function der(tag: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const value = Buffer.concat(parts.map(part => (typeof part === 'string' ? Buffer.from(part, 'hex') : part)))
  const { length } = value
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), value])
}
