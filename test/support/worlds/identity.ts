/** An identity provider and signers of links: JWTs are made by hand here, so that they can be wrong in any way. */
import {
  constants,
  createHmac,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { createKeyId } from '../../../src/http/access/link-form.ts'
import type { ProviderOptions } from '../../../src/http/access/verify-provider.ts'
import type { KeyAccess, StoredKey } from '../../../src/store/store.ts'

type Members = Record<string, unknown>

export const encode = (value: Members | string | Buffer): string =>
  Buffer.from(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value)).toString(
    'base64url',
  )

/** Header and payload may be given as the JSON text itself. `alg` is what the signature is really made with. */
export function signJwt(
  header: Members | string,
  payload: Members | string,
  key: KeyObject | Buffer | string,
  alg = String((header as Members).alg),
): string {
  const signed = `${encode(header)}.${encode(payload)}`
  return `${signed}.${signBytes(alg, Buffer.from(signed), key).toString('base64url')}`
}

function signBytes(alg: string, data: Buffer, key: KeyObject | Buffer | string): Buffer {
  const hash = `sha${alg.slice(2)}`
  if (alg.startsWith('HS'))
    return createHmac(hash, key as Buffer)
      .update(data)
      .digest()
  const given = key as KeyObject
  if (alg.startsWith('RS')) return sign(hash, data, given)
  if (alg.startsWith('PS'))
    return sign(hash, data, {
      key: given,
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
    })
  if (alg.startsWith('ES')) return sign(hash, data, { key: given, dsaEncoding: 'ieee-p1363' })
  return sign(null, data, given)
}

export interface SigningKey {
  kid: string
  alg: string
  private: KeyObject
  public: KeyObject
  /** As a key set publishes it. */
  jwk: Members
}

const rsaPairs = new Map<number, { publicKey: KeyObject; privateKey: KeyObject }>()

/** Making one takes a third of a second: all of one length are the same key. */
function makeRsaPair(modulusLength: number) {
  const pair = rsaPairs.get(modulusLength) ?? generateKeyPairSync('rsa', { modulusLength })
  rsaPairs.set(modulusLength, pair)
  return pair
}

export function makeSigningKey(kid: string, alg = 'ES256', rsaBits = 2_048): SigningKey {
  const pair = /^[RP]S/.test(alg)
    ? makeRsaPair(rsaBits)
    : alg.startsWith('ES')
      ? generateKeyPairSync('ec', {
          namedCurve: { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }[alg] ?? '',
        })
      : generateKeyPairSync('ed25519')
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' }
  return { kid, alg, private: pair.privateKey, public: pair.publicKey, jwk }
}

export const issuer = 'https://login.example.com/'
export const audience = 'https://billing.example.com/api'
export const publicUrl = 'https://billing.example.com'

export interface Provider {
  options: ProviderOptions
  /** What is published from now on. */
  keys: (SigningKey | Members)[]
  /** How often the key set was asked for. */
  fetches: number
  /** Answers instead of publishing the keys; null publishes again. */
  respond: ((response: ServerResponse) => void) | null
  /** A good token, unless something of it is overridden; `undefined` leaves a member out. */
  token(claims?: Members, header?: Members, key?: SigningKey): string
}

export async function startProvider(t: TestContext): Promise<Provider> {
  const server = createServer((_request, response) => {
    provider.fetches++
    if (provider.respond !== null) return provider.respond(response)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ keys: provider.keys.map(key => (key as SigningKey | null)?.jwk ?? key) }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const first = makeSigningKey('first')
  const provider: Provider = {
    options: {
      jwksUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
      ...{ issuer, audience, customerClaim: 'customer_id', scope: null, typ: null },
    },
    keys: [first],
    fetches: 0,
    respond: null,
    token(claims = {}, header = {}, key = first) {
      const now = Math.floor(Date.now() / 1000)
      const usual = { iss: issuer, aud: audience, sub: 'canary-subject', iat: now, exp: now + 600 }
      return signJwt(
        { alg: key.alg, typ: 'at+jwt', kid: key.kid, ...header },
        { ...usual, customer_id: 'cus_ana', ...claims },
        key.private,
        key.alg,
      )
    },
  }
  return provider
}

/** A stored key as the API reads it. */
export function accessOf({ kid, x, customers, revoked_at }: StoredKey): KeyAccess {
  return { kid, x, every_customer: customers === null, revoked_at }
}

export interface LinkSigner {
  key: StoredKey
  private: KeyObject
  /** A good token for cus_ana, unless something of it is overridden. */
  token(claims?: Members, header?: Members): string
}

export function makeLinkSigner(customers: readonly string[] | null = null): LinkSigner {
  const pair = generateKeyPairSync('ed25519')
  const { x = '' } = pair.publicKey.export({ format: 'jwk' })
  const kid = createKeyId()
  return {
    key: { kid, name: 'test', x, customers, created_at: Date.now(), revoked_at: null },
    private: createPrivateKey(pair.privateKey.export({ format: 'pem', type: 'pkcs8' })),
    token(claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1000)
      return signJwt(
        { alg: 'EdDSA', typ: 'fatura-link+jwt', kid, ...header },
        { sub: 'cus_ana', aud: publicUrl, iat: now, exp: now + 600, ...claims },
        pair.privateKey,
        'EdDSA',
      )
    },
  }
}
