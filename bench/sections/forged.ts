/**
 * Forged customer links at a rate, all from one address, beside fresh right ones and beside page 1 of a known token: how many right ones
 * are refused, and the p99 of page 1 alone, beside the forged ones, and beside as many ordinary requests, in turn.
 */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createKeyId } from '../../src/http/access/link-form.ts'
import { createToken } from '../../src/http/access/token.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { runOpenLoop } from '../load/open-loop.ts'
import { describeMachine } from '../machine.ts'
import { readFlags } from '../options.ts'
import { defaultFolder } from '../seed/data-folder.ts'
import { chooseCustomers, openSeeded } from '../seed/stores.ts'
import { cleanUp, cleanUpOnSignals } from '../servers/clean-up.ts'
import { entryPoint, startServer } from '../servers/processes.ts'
import { listPath } from '../servers/service.ts'
import { formatTable, spread } from '../statistics.ts'

const values = readFlags({
  rounds: '5',
  seconds: '5',
  rate: '1000',
  data: defaultFolder,
})
const [rounds, seconds, rate] = [Number(values.rounds), Number(values.seconds), Number(values.rate)]
const shape = { customers: 1_000, each: 40, large: [] }
const publicUrl = 'https://billing.example.com'

async function measure(): Promise<string> {
  const seeded = await openSeeded({ folder: values.data }, shape, null)
  const customers = chooseCustomers(shape, 50)
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const kid = createKeyId()
  const { id, token, hash } = createToken()
  const store = await openWriteStore(seeded.url)
  const made = { name: 'bench', customers: null, created_at: Date.now(), revoked_at: null }
  const { x = '' } = publicKey.export({ format: 'jwk' })
  await store.saveKey({ kid, x, ...made })
  await store.saveToken({ id, hash, expires_at: null, ...made })
  await store.close()
  const { address } = await startServer(values.data, 'forged', [entryPoint, 'serve'], {
    ...{ DATABASE_URL: seeded.readUrl, PORT: '0', RATE_LIMIT: 'off', NODE_ENV: 'production' },
    PUBLIC_URL: publicUrl,
  })
  let linksMade = 0
  const link = (key: KeyObject, customer: string) => {
    const iat = Math.floor(Date.now() / 1000)
    const parts = [
      { alg: 'EdDSA', typ: 'fatura-link+jwt', kid },
      { sub: customer, aud: publicUrl, iat, exp: iat + 3_600, jti: String(linksMade++) },
    ]
    const signed = parts.map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
  }
  const stranger = generateKeyPairSync('ed25519').privateKey
  const ask = (bearer: (customer: string) => string, count: number) =>
    Array.from({ length: count }, (_, n) => {
      const customer = customers[n % customers.length] ?? ''
      return { path: listPath(customer), headers: { authorization: `Bearer ${bearer(customer)}` } }
    })
  const send = (requests: ReturnType<typeof ask>, ratePerSecond: number) =>
    runOpenLoop({
      address,
      requests,
      ratePerSecond,
      seconds,
      maxConnections: 500,
      openFirst: 20,
      leadSeconds: 1,
    })
  const known = ask(() => token, 50)
  const p99 = { alone: [] as number[], ordinary: [] as number[], forged: [] as number[] }
  const note = (figures: number[], { byStatus }: Awaited<ReturnType<typeof send>>) =>
    figures.push(...byStatus.filter(({ status }) => status === 200).map(each => each.p99))
  const answers = { right: 0, refused: 0, forged: 0 }
  for (let round = 0; round < rounds; round++) {
    note(p99.alone, await send(known, 100))
    const [amid] = await Promise.all([send(known, 100), send(known, rate)])
    note(p99.ordinary, amid)
    const links = 250
    const [beside, fresh, forged] = await Promise.all([
      send(known, 100),
      send(
        ask(customer => link(privateKey, customer), links),
        links / seconds,
      ),
      send(
        ask(customer => link(stranger, customer), rate * (seconds + 1)),
        rate,
      ),
    ])
    note(p99.forged, beside)
    for (const { status, count } of fresh.byStatus) answers[status === 200 ? 'right' : 'refused'] += count
    answers.refused += fresh.failed
    for (const { count } of forged.byStatus) answers.forged += count
  }
  const ratios = (other: readonly number[]) => p99.forged.map((each, n) => each / (other[n] ?? 1))
  return formatTable(
    [
      'Forged',
      'Fresh right links',
      'Refused of these',
      'p99 of page 1 alone, ms',
      'beside ordinary requests',
      'beside forged',
      'forged / alone',
      'forged / ordinary',
    ],
    [
      [
        ...[String(answers.forged), String(answers.right + answers.refused), String(answers.refused)],
        ...[p99.alone, p99.ordinary, p99.forged].map(each => spread(each, 1)),
        ...[p99.alone, p99.ordinary].map(each => spread(ratios(each), 2)),
      ],
    ],
  )
}

cleanUpOnSignals()
try {
  process.stdout.write(`${await measure()}\n\n${describeMachine(null)}.\n`)
} finally {
  await cleanUp()
}
