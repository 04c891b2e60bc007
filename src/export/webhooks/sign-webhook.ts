/** Signs webhooks after Standard Webhooks: `v1` is HMAC-SHA256, `v1a` is Ed25519. */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto'
import type { OutgoingWebhook } from '../../store/change-store.ts'

const secretPrefix = 'whsec_'

type Keys = Pick<OutgoingWebhook, 'secret' | 'private_key'>

export function createKeys(): Keys {
  const { privateKey } = generateKeyPairSync('ed25519')
  return {
    secret: secretPrefix + randomBytes(32).toString('base64'),
    private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
  }
}

/** The public key as Standard Webhooks writes it: `whpk_` and the raw key in base64. */
export function publicKeyOf({ private_key }: Pick<Keys, 'private_key'>): string {
  const { x } = createPublicKey(readKey(private_key)).export({ format: 'jwk' })
  return `whpk_${Buffer.from(String(x), 'base64url').toString('base64')}`
}

export function signWebhook(keys: Keys, id: string, body: string, now: number): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000))
  const content = `${id}.${timestamp}.${body}`
  const hmac = createHmac('sha256', Buffer.from(keys.secret.slice(secretPrefix.length), 'base64'))
  const signed = sign(null, Buffer.from(content), readKey(keys.private_key))
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${hmac.update(content).digest('base64')} v1a,${signed.toString('base64')}`,
  }
}

function readKey(text: string) {
  return createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' })
}
