/**
 * What a request costs by the kind of its token: opaque, opaque and for 10,000 customers, a JWT of an identity
 * provider, a customer link. One service, page 1
 * of 50 customers, each with a token of each kind; the kinds take turns within one run, and the ratio is what counts.
 */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createKeyId } from '../../src/http/access/link-form.ts'
import { createToken } from '../../src/http/access/token.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import type { WriteStore } from '../../src/store/store.ts'
import type { Target } from '../load/targets.ts'
import { describeMachine } from '../machine.ts'
import { readFlags } from '../options.ts'
import { figures, ratios, runRounds } from '../rounds.ts'
import { defaultFolder } from '../seed/data-folder.ts'
import { chooseCustomers, openSeeded } from '../seed/stores.ts'
import { cleanUp, cleanUpOnSignals } from '../servers/clean-up.ts'
import { entryPoint, startServer } from '../servers/processes.ts'
import { listPath } from '../servers/service.ts'
import { formatTable, spread } from '../statistics.ts'

const values = readFlags({
  rounds: '8',
  seconds: '1',
  data: defaultFolder,
})

const shape = { customers: 1_000, each: 40, large: [] }
const [issuer, audience, publicUrl] = ['https://login.example.com', 'fatura', 'https://billing.example.com']

function signJwt(header: object, payload: object, hash: string | null, key: KeyObject): string {
  const signed = [header, payload]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${sign(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

function moments() {
  const iat = Math.floor(Date.now() / 1000)
  return { iat, exp: iat + 20 * 3_600 }
}

async function saveToken(store: WriteStore, customers: string[]): Promise<string> {
  const { id, token, hash } = createToken()
  await store.saveToken({
    ...{ id, name: 'bench', hash, customers, created_at: Date.now() },
    ...{ expires_at: null, revoked_at: null },
  })
  return token
}

async function measure(): Promise<string> {
  const provider = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keySet = { keys: [{ ...provider.publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256' }] }
  const jwks = createServer((_request, response) => response.end(JSON.stringify(keySet)))
  await new Promise<void>(resolve => jwks.listen(0, '127.0.0.1', resolve))
  const seeded = await openSeeded({ folder: values.data }, shape, null)
  const customers = chooseCustomers(shape, 50)
  const link = generateKeyPairSync('ed25519')
  const kid = createKeyId()
  const store = await openWriteStore(seeded.url)
  const { x = '' } = link.publicKey.export({ format: 'jwk' })
  await store.saveKey({ kid, name: 'bench', x, customers: null, created_at: Date.now(), revoked_at: null })
  const others = Array.from({ length: 9_999 }, (_, n) => `cus_other${n}`)
  const makers = {
    'an opaque token': (customer: string) => saveToken(store, [customer]),
    'one for 10,000 customers': (customer: string) => saveToken(store, [...others, customer]),
    'a JWT of a provider': (customer: string) =>
      signJwt(
        { alg: 'ES256', typ: 'at+jwt', kid: 'k' },
        {
          ...{ iss: issuer, aud: audience, sub: customer, customer_id: customer, ...moments() },
          // What providers add, so that it is as long as such tokens are.
          ...{ jti: customer.repeat(2), azp: 'billing-portal', scope: 'openid profile email invoices:read' },
        },
        'sha256',
        provider.privateKey,
      ),
    'a customer link': (customer: string) =>
      signJwt(
        { alg: 'EdDSA', typ: 'fatura-link+jwt', kid },
        { sub: customer, aud: publicUrl, ...moments() },
        null,
        link.privateKey,
      ),
  }
  const tokens = new Map<string, string[]>()
  for (const [kind, make] of Object.entries(makers)) {
    tokens.set(kind, [])
    for (const customer of customers) tokens.get(kind)?.push(await make(customer))
  }
  await store.close()
  const server = await startServer(values.data, 'identity', [entryPoint, 'serve'], {
    ...{ DATABASE_URL: seeded.readUrl, PORT: '0', RATE_LIMIT: '999999999/h', NODE_ENV: 'production' },
    ...{ PUBLIC_URL: publicUrl, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience },
    AUTH_JWKS_URL: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/jwks.json`,
  })
  const targets: Target[] = [...tokens].map(([kind, each]) => ({
    ...{ ...server, key: kind, name: kind, databasePid: null, status: 200 },
    requests: customers.map((customer, n) => ({
      path: listPath(customer),
      headers: { authorization: `Bearer ${each[n]}` },
    })),
  }))
  const rounds = await runRounds(targets, Number(values.rounds), Number(values.seconds))
  jwks.closeAllConnections()
  jwks.close()
  const [first = ''] = tokens.keys()
  return formatTable(
    ['Token', 'Characters', 'CPU, µs a request (least–most)', 'To an opaque one, round by round'],
    [...tokens].map(([kind, [token = '']]) => [
      kind,
      String(token.length),
      spread(figures(rounds, kind, 'cpu'), 1),
      spread(ratios(rounds, kind, first, 'cpu'), 3),
    ]),
  )
}

cleanUpOnSignals()
try {
  process.stdout.write(`${await measure()}\n\n${describeMachine(null)}.\n`)
} finally {
  await cleanUp()
}
