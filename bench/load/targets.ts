/** Everything that is loaded, on the same invoices: the floors, the peer and the service. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { hashToken } from '../../src/http/access/token.ts'
import type { Options } from '../options.ts'
import { seedPostgresTables, seedSqliteFloor } from '../seed/seed-tables.ts'
import { chooseCustomers, engineLabels, type SeededStore } from '../seed/stores.ts'
import type { Question, ServiceQuestion } from '../servers/listen.ts'
import type { PostgresServer } from '../servers/postgres-server.ts'
import { type RunningServer, startServer } from '../servers/processes.ts'
import { listPath, type Service, startService } from '../servers/service.ts'
import { openConnection } from './ask.ts'
import type { Loaded } from './load.ts'

export interface Target extends Loaded {
  /** What it is called in the code. */
  key: string
  emptyLog(): void
  stop(): Promise<void>
}

const customersAsked = 200

/** How a target is asked for its list. The floors need no token, and do not search. */
interface ListServer extends RunningServer {
  key: string
  name: string
  searches?: true
  headers: Record<string, string>
  databasePid: number | null
}

export async function startTargets(options: Options, stores: readonly SeededStore[]): Promise<Target[]> {
  const customers = chooseCustomers(options.shape, customersAsked)
  const servers: ListServer[] = []
  const targets: Target[] = []
  for (const store of stores) {
    const service = await startService({ folder: options.folder, name: `service-${store.engine}`, store })
    const [key, name] = [`service-${store.engine}`, `Fatura on ${engineLabels[store.engine]}`]
    const databasePid = store.server?.pid ?? null
    servers.push(...(await startOthers(options, store, service.headers)))
    servers.push(await startPlain(options, store, service.headers))
    servers.push({ ...service, key, name, databasePid, searches: true })
    targets.push(...(await singleTargets(service, customers, { key, name, databasePid })))
  }
  for (const question of Object.keys(serviceQuestions) as ServiceQuestion[])
    await checkAlike(
      servers.filter(server => mayAsk(server, question)),
      customers,
      question,
    )
  const lists = servers.flatMap(({ headers, ...server }) =>
    Object.entries(serviceQuestions)
      .filter(([question]) => mayAsk(server, question as ServiceQuestion))
      .map(([question, { key, name }]): Target => {
        const requests = customers.map(customer => ({ path: listPath(customer) + question, headers }))
        return { ...server, key: server.key + key, name: server.name + name, requests, status: 200 }
      }),
  )
  const { headers, ...constant } = await startConstant(options, servers, customers)
  const constants = {
    ...constant,
    requests: customers.map(customer => ({ path: listPath(customer), headers })),
  }
  return [{ ...constants, status: 200 }, ...lists, ...targets]
}

/** The lists that every server answers: keys and names of their targets. */
export const questions: Readonly<Record<Question, { key: string; name: string }>> = {
  '': { key: '', name: '' },
  '?page=2': { key: '-page-2', name: ': page 2' },
  '?status=paid': { key: '-paid', name: ': status=paid' },
}

export const serviceQuestions: Readonly<Record<ServiceQuestion, { key: string; name: string }>> = {
  ...questions,
  '?q=lda': { key: '-q', name: ': q' },
}

function mayAsk({ searches }: Pick<ListServer, 'searches'>, question: ServiceQuestion): boolean {
  return searches === true || Object.hasOwn(questions, question)
}

const program = (file: string) => fileURLToPath(new URL(`../servers/${file}`, import.meta.url))

/** The floor of an engine, and on PostgreSQL the peer. */
async function startOthers(
  { folder, shape }: Options,
  { server }: SeededStore,
  headers: Service['headers'],
): Promise<ListServer[]> {
  const start = async (key: string, name: string, file: string, data: string): Promise<ListServer> => {
    const running = await startServer(folder, key, [program(file), data], { NODE_ENV: 'production' })
    return { ...running, key, name, headers: {}, databasePid: server?.pid ?? null }
  }
  if (server === null) {
    const path = await seedSqliteFloor(folder, shape)
    return [await start('f1', 'F1: node:http and node:sqlite', 'sqlite-floor.ts', path)]
  }
  const url = await seedPostgresTables(server, shape)
  await admitToPeer(server, url, headers)
  const peer = await start('peer', 'Peer: Fastify and Drizzle', 'drizzle-peer.ts', url)
  return [
    await start('f2', 'F2: node:http and pg', 'postgres-floor.ts', url),
    { ...peer, headers, searches: true },
  ]
}

/** The peer looks the services' token up in a table of its own. */
async function admitToPeer(server: PostgresServer, url: string, headers: Service['headers']): Promise<void> {
  const hash = hashToken((headers.authorization ?? '').slice('Bearer '.length))
  await server.query(new URL(url).pathname.slice(1), `INSERT INTO tokens VALUES ('${hash}')`)
}

/** With the duties of the service, on its tables. */
async function startPlain(
  { folder }: Options,
  { engine, url, server }: SeededStore,
  headers: ListServer['headers'],
): Promise<ListServer> {
  const key = `plain-${engine}`
  const running = await startServer(folder, key, [program('plain-service.ts'), url], {
    NODE_ENV: 'production',
  })
  const name = `Plain service on ${engineLabels[engine]}`
  return { ...running, key, name, headers, databasePid: server?.pid ?? null, searches: true }
}

async function startConstant(
  { folder }: Options,
  [first]: readonly ListServer[],
  [customer = '']: readonly string[],
): Promise<ListServer> {
  if (first === undefined) throw new Error('There is no server to take the page from.')
  const { ask, close } = openConnection(first.address)
  const { text } = await ask({ path: listPath(customer), headers: first.headers })
  close()
  const file = join(folder, 'page.json')
  await writeFile(file, text)
  const running = await startServer(folder, 'f0', [program('constant.ts'), file], { NODE_ENV: 'production' })
  return { ...running, key: 'f0', name: 'F0: node:http, constant bytes', headers: {}, databasePid: null }
}

/** The service's other answers: one invoice, and 304. */
export async function singleTargets(
  { headers, ...service }: Service,
  customers: readonly string[],
  { key, name, databasePid }: Pick<Target, 'key' | 'name' | 'databasePid'>,
): Promise<Target[]> {
  const { ask, close } = openConnection(service.address)
  const details: Target['requests'][number][] = []
  const unchanged: Target['requests'][number][] = []
  for (const customer of customers) {
    const path = listPath(customer)
    const { text, etag } = await ask({ path, headers })
    const [invoice] = JSON.parse(text).invoices
    details.push({ path: `/api/v1/client/${customer}/invoice/${invoice.id}`, headers })
    unchanged.push({ path, headers: { ...headers, 'if-none-match': etag } })
  }
  close()
  return [
    {
      ...service,
      key: `${key}-detail`,
      name: `${name}: detail`,
      databasePid,
      requests: details,
      status: 200,
    },
    { ...service, key: `${key}-304`, name: `${name}: 304`, databasePid, requests: unchanged, status: 304 },
  ]
}

/** Throws unless all answer every customer's page alike, field by field. */
async function checkAlike(
  servers: readonly ListServer[],
  customers: readonly string[],
  question: ServiceQuestion,
): Promise<void> {
  const connections = servers.map(({ address }) => openConnection(address))
  for (const customer of customers) {
    const pages = await Promise.all(
      servers.map(async ({ headers }, index) => {
        const answer = await connections[index]?.ask({ path: listPath(customer) + question, headers })
        return JSON.parse(answer?.text ?? '')
      }),
    )
    if (pages[0].invoices.length !== 10 && ['', '?page=2'].includes(question))
      throw new Error(`${customer} has no page of 10.`)
    const other = pages.findIndex(page => !isDeepStrictEqual(page, pages[0]))
    if (other !== -1)
      throw new Error(`${servers[other]?.name} and ${servers[0]?.name} answer ${customer} differently.`)
  }
  for (const { close } of connections) close()
  process.stderr.write(`${servers.length} servers answer ${customers.length} customers' pages alike.\n`)
}
