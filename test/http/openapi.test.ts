/** The OpenAPI document is what the routes are, and what the service answers. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { errorCodes } from '../../src/domain/errors.ts'
import { type AppOptions, createApp } from '../../src/http/app.ts'
import { describeApi } from '../../src/http/describe-api.ts'

import { loadWebFiles, readApiDescription } from '../../src/http/web-files.ts'
import { findFaults } from '../support/checks/fits-schema.ts'
import { engines } from '../support/databases/engines.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'
import { type Answer, startService } from '../support/worlds/service.ts'

const run = promisify(execFile)
const root = new URL('../..', import.meta.url).pathname
const committed = await readFile(join(root, 'openapi.json'), 'utf8')
// biome-ignore lint/suspicious/noExplicitAny: a JSON document, read as it comes
const document: any = JSON.parse(committed)

test('openapi.json is the output of the routes’ schemas (npm run openapi)', async () => {
  assert.equal(await describeApi(), committed)
})

test('openapi.json has exactly the service’s routes, except files for browsers', async () => {
  const files = loadWebFiles(readApiDescription())
  const app = createApp({ rateLimit: null, files } as unknown as AppOptions)
  await app.ready()
  const routes = readRoutes(app.printRoutes({ commonPrefix: false, method: 'GET' }))
  await app.close()
  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations as object).map(method => `${method.toUpperCase()} ${path}`),
  )
  assert.ok(routes.length >= 7)
  const served = files.map(({ path }) => `GET ${path}`)
  assert.ok(served.length >= 3 && served.every(route => !route.startsWith('GET /api/')))
  assert.deepEqual([...described, ...served].sort(), routes.sort())
})

/** Fastify prints a tree; a branch continues the path of the line it hangs from. */
function readRoutes(tree: string): string[] {
  const above: string[] = []
  return [...tree.matchAll(/^([│ ]*)[├└]── (\S+) \(GET\)$/gm)].map(([, indent = '', segment = '']) => {
    const depth = indent.length / 4
    above[depth] = (depth === 0 ? '' : above[depth - 1]) + segment
    return `GET ${above[depth]?.replace(/:(\w+)/g, '{$1}')}`
  })
}

test('openapi.json is OpenAPI 3.1 and describes every operation, parameter, response, header and property', () => {
  assert.match(document.openapi, /^3\.1\./)
  for (const [path, operations] of Object.entries<Record<string, never>>(document.paths))
    for (const operation of Object.values<never>(operations)) {
      const { summary, description, operationId, tags, parameters = [], responses } = operation
      assert.ok(summary && description && operationId && tags, path)
      for (const parameter of parameters as { name: string; description?: string }[])
        assert.ok(parameter.description, `${path} ${parameter.name}`)
      for (const [status, response] of Object.entries<Record<string, Record<string, never>>>(responses)) {
        assert.ok(response.description, `${path} ${status}`)
        for (const [name, header] of Object.entries<{ description?: string }>(response.headers ?? {}))
          assert.ok(header.description, `${path} ${status} ${name}`)
      }
    }
  for (const [name, schema] of Object.entries<{ description?: string; properties?: Record<string, object> }>(
    document.components.schemas,
  )) {
    assert.ok(schema.description, name)
    for (const [property, value] of Object.entries(schema.properties ?? {}))
      assert.ok('description' in value || '$ref' in value, `${name}.${property}`)
  }
})

test('openapi.json suits client generators: named operations, no schema Error, each enum named once', () => {
  const operations = Object.values<{ get: { operationId: string } }>(document.paths)
  for (const { get } of operations) assert.match(get.operationId, /^(list|get|download)[A-Z][A-Za-z]+$/)
  assert.equal(new Set(operations.map(({ get }) => get.operationId)).size, operations.length)
  assert.ok(!('Error' in document.components.schemas))
  const enums: string[] = []
  JSON.stringify(document, (_key, value) => {
    if (Array.isArray(value?.enum) && value.enum.length > 1) enums.push(value.enum.join())
    return value
  })
  assert.equal(new Set(enums).size, enums.length, enums.join('\n'))
  assert.ok(enums.length >= 4)
})

test('every error code is described with an example where it can occur', () => {
  const described = new Set<string>()
  for (const operations of Object.values<Record<string, { responses: object }>>(document.paths))
    for (const { responses } of Object.values(operations))
      for (const [status, response] of Object.entries<{
        content?: Record<string, { examples?: Record<string, { value: { error: { code: string } } }> }>
      }>(responses as never))
        for (const [code, example] of Object.entries(
          response.content?.['application/json']?.examples ?? {},
        )) {
          assert.equal(example.value.error.code, code)
          assert.equal(String(errorCodes[code as keyof typeof errorCodes].status), status)
          described.add(code)
        }
  // This one is answered where no operation is.
  assert.deepEqual([...described, 'method_not_allowed'].sort(), Object.keys(errorCodes).sort())
})

test('openapi.json passes redocly lint with its recommended rules', {
  timeout: 600_000,
}, async () => {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const redocly = join(root, 'tools/node_modules/@redocly/cli/bin/cli.js')
  const { stderr } = await run(process.execPath, [redocly, 'lint', '--extends=recommended', 'openapi.json'], {
    cwd: root,
    env,
  })
  assert.match(stderr, /Your API description is valid/)
  assert.doesNotMatch(stderr, /warning|ignored/i)
})

/** What a body has against it by the schema that the document gives for an answer. */
function faultsOf(path: string, status: number, body: unknown): string[] {
  const { schema } = document.paths[path].get.responses[status].content['application/json']
  return findFaults(schema, body, document.components)
}

function assertDescribed(path: string, answer: Answer): void {
  assert.deepEqual(faultsOf(path, answer.status, answer.json), [], `${path} ${answer.status}: ${answer.text}`)
}

for (const engine of engines) {
  describe(`the API description on ${engine.name}`, () => {
    const base = '/api/v1/client/{customerId}'

    test('is served at /api/v1/openapi.json without a token', async t => {
      const service = await startService(t, engine)
      const { status, headers, text } = await service.get('/api/v1/openapi.json', { token: null })
      assert.deepEqual([status, headers['content-type'], text], [200, 'application/json', committed])
    })

    test('has schemas that fit every answer, and allow no other field', async t => {
      const service = await startService(t, engine, {
        records: [
          makeRecord({ id: 'in_1', ...withDocument }, [
            makeLine(),
            makeLine({ quantity: null, description: null }),
          ]),
          makeRecord({ id: 'in_2', number: null, tax_percent: null, customer_email: null }),
        ],
      })
      const client = '/api/v1/client/cus_ana'
      assertDescribed(`${base}/invoices`, await service.get(`${client}/invoices`))
      assertDescribed(`${base}/invoices`, await service.get(`${client}/invoices?status=void`))
      assertDescribed(`${base}/invoices`, await service.get(`${client}/invoices?page=x`))
      assertDescribed(`${base}/invoices`, await service.get(`${client}/invoices`, { token: null }))
      assertDescribed(`${base}/invoice/{invoiceId}`, await service.get(`${client}/invoice/in_1`))
      assertDescribed(`${base}/invoice/{invoiceId}`, await service.get(`${client}/invoice/in_2`))
      assertDescribed(`${base}/invoice/{invoiceId}`, await service.get(`${client}/invoice/in_none`))
      assertDescribed(
        `${base}/invoice/{invoiceId}/ix/download`,
        await service.get(`${client}/invoice/in_2/ix/download`),
      )
      assertDescribed('/live', await service.get('/live'))
      assertDescribed('/ready', await service.get('/ready'))
    })

    test('has schemas that refuse an added, missing or differently typed field', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' }, [makeLine()])] })
      const { json } = await service.get('/api/v1/client/cus_ana/invoice/in_1')
      const check = (body: unknown) => faultsOf(`${base}/invoice/{invoiceId}`, 200, body)
      assert.deepEqual(check(json), [])
      const { number, ...less } = json
      for (const wrong of [
        { ...json, more: 1 },
        less,
        { ...json, total_cents: '1' },
        { ...json, lines: [{ ...json.lines[0], more: 1 }] },
      ])
        assert.ok(check(wrong).length > 0, JSON.stringify(wrong))
    })
  })
}
