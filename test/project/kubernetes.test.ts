/** The manifests: their fields are those that Kubernetes knows, and what they name exists. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { fileVariable, settingNames } from '../../src/cli/settings/settings.ts'
import { createCli, get } from '../support/clients/cli.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const folder = 'ops/kubernetes'

/** Fields as in the reference of Kubernetes' API, of those kinds that are used: a type, or what lies below. `*` is any name. */
type Fields = 'string' | 'number' | 'boolean' | 'port' | [Fields] | { [name: string]: Fields }

const names: Fields = { '*': 'string' }
const metadata: Fields = { name: 'string', labels: names }
const probe: Fields = {
  httpGet: { path: 'string', port: 'port' },
  initialDelaySeconds: 'number',
  periodSeconds: 'number',
  timeoutSeconds: 'number',
  failureThreshold: 'number',
}
const container: Fields = {
  name: 'string',
  image: 'string',
  args: ['string'],
  ports: [{ name: 'string', containerPort: 'number' }],
  env: [{ name: 'string', value: 'string' }],
  livenessProbe: probe,
  readinessProbe: probe,
  resources: { requests: { cpu: 'string', memory: 'string' }, limits: { memory: 'string' } },
  securityContext: {
    allowPrivilegeEscalation: 'boolean',
    readOnlyRootFilesystem: 'boolean',
    capabilities: { drop: ['string'] },
  },
  volumeMounts: [{ name: 'string', mountPath: 'string', readOnly: 'boolean' }],
}
const template: Fields = {
  metadata: { labels: names },
  spec: {
    restartPolicy: 'string',
    automountServiceAccountToken: 'boolean',
    enableServiceLinks: 'boolean',
    terminationGracePeriodSeconds: 'number',
    securityContext: {
      runAsNonRoot: 'boolean',
      runAsUser: 'number',
      runAsGroup: 'number',
      fsGroup: 'number',
      seccompProfile: { type: 'string' },
    },
    containers: [container],
    volumes: [{ name: 'string', secret: { secretName: 'string', defaultMode: 'number' }, emptyDir: {} }],
  },
}
const head: Record<string, Fields> = { apiVersion: 'string', kind: 'string', metadata }
const kinds: Record<string, Fields> = {
  'apps/v1 Deployment': {
    ...head,
    spec: {
      replicas: 'number',
      strategy: { type: 'string', rollingUpdate: { maxUnavailable: 'number', maxSurge: 'number' } },
      selector: { matchLabels: names },
      template,
    },
  },
  'batch/v1 Job': { ...head, spec: { backoffLimit: 'number', ttlSecondsAfterFinished: 'number', template } },
  'v1 Service': {
    ...head,
    spec: { selector: names, ports: [{ name: 'string', port: 'number', targetPort: 'port' }] },
  },
}

/** Where a value has a field that is not known, or of another type. */
function findWrong(value: unknown, fields: Fields, at = ''): string[] {
  if (fields === 'port') return /^(string|number)$/.test(typeof value) ? [] : [at]
  if (typeof fields === 'string') return typeof value === fields ? [] : [at]
  if (Array.isArray(fields))
    return Array.isArray(value) ? value.flatMap((one, i) => findWrong(one, fields[0], `${at}[${i}]`)) : [at]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [at]
  return Object.entries(value).flatMap(([name, below]) => {
    const known = fields[name] ?? fields['*']
    return known === undefined ? [`${at}.${name}`] : findWrong(below, known, `${at}.${name}`)
  })
}

// biome-ignore lint/suspicious/noExplicitAny: findWrong says what it is
type Manifest = any

const manifests: Manifest[] = readdirSync(join(root, folder)).flatMap(file =>
  parseAllDocuments(read(`${folder}/${file}`)).map(document => {
    assert.deepEqual(document.errors, [], file)
    return document.toJS()
  }),
)
const fieldsOf = ({ apiVersion, kind }: Manifest) => kinds[`${apiVersion} ${kind}`] ?? assert.fail(kind)
const workloads = manifests.filter(({ kind }) => kind !== 'Service')
const containerOf = ({ spec }: Manifest) => spec.template.spec.containers[0]
const named = (name: string): Manifest => workloads.find(({ metadata }) => metadata.name === `fatura-${name}`)

describe('the manifests for Kubernetes', () => {
  test('have only known fields with the right types, and the check reports mistakes', () => {
    assert.equal(manifests.length, 5)
    for (const manifest of manifests) assert.deepEqual(findWrong(manifest, fieldsOf(manifest)), [])
    const serve = structuredClone(named('serve'))
    containerOf(serve).readinesProbe = {}
    containerOf(serve).env[0].value = 1
    assert.equal(findWrong(serve, fieldsOf(serve)).length, 2)
  })

  test('have a read-only root, resource limits and time to stop, and give no privileges', () => {
    for (const { spec } of workloads) {
      const pod = spec.template.spec
      assert.equal(pod.securityContext.runAsNonRoot, true)
      assert.equal(pod.securityContext.runAsUser, 1_000)
      assert.ok(pod.terminationGracePeriodSeconds >= 20)
      const { securityContext, resources } = pod.containers[0]
      assert.equal(securityContext.readOnlyRootFilesystem, true)
      assert.equal(securityContext.allowPrivilegeEscalation, false)
      assert.deepEqual(securityContext.capabilities.drop, ['ALL'])
      assert.ok(resources.limits.memory && resources.requests.memory)
    }
    assert.deepEqual([named('sync').spec.replicas, named('sync').spec.strategy.type], [1, 'Recreate'])
    assert.equal(named('serve').spec.replicas, 2)
  })

  test('select their own pods, and lead to named ports', () => {
    for (const { spec } of workloads.filter(({ kind }) => kind === 'Deployment'))
      assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels)
    for (const { metadata, spec } of manifests.filter(({ kind }) => kind === 'Service')) {
      const workload = workloads.find(one => one.metadata.name === metadata.name)
      assert.deepEqual(spec.selector, workload.spec.template.metadata.labels)
      const ports = containerOf(workload).ports.map(({ name }: { name: string }) => name)
      for (const { targetPort } of spec.ports) assert.ok(ports.includes(targetPort))
    }
  })

  test('name existing commands, settings and secrets', () => {
    const help = execFileSync(process.execPath, [join(root, 'bin/fatura.js'), '--help'], { encoding: 'utf8' })
    const page = read('docs/install.md')
    const variables = new Set<string>(settingNames.flatMap(name => [name, fileVariable(name) ?? name]))
    for (const workload of workloads) {
      const { args, env, volumeMounts } = containerOf(workload)
      assert.match(help, new RegExp(`^ {2}${args[0]} `, 'm'))
      const { secretName } = workload.spec.template.spec.volumes[0].secret
      const [made = ''] = new RegExp(`^kubectl create secret generic ${secretName} .*$`, 'm').exec(page) ?? []
      for (const { name, value } of env) {
        assert.ok(variables.has(name), name)
        if (!name.endsWith('_FILE')) continue
        assert.ok(value.startsWith(`${volumeMounts[0].mountPath}/`), value)
        assert.ok(made.includes(`--from-file=${value.slice(volumeMounts[0].mountPath.length + 1)}`), value)
      }
    }
  })

  test('start programs that answer the probes at their ports', async t => {
    const cli = await createCli(t)
    await mkdir(join(cli.folder, 'secrets'))
    const values: Record<string, string> = {
      'database-url': `sqlite:${cli.database}`,
      'stripe-api-key': 'sk_test_canary',
      'stripe-webhook-secret': 'whsec_canary',
      'admin-token': 'an-admin-token-of-the-test',
    }
    for (const [name, value] of Object.entries(values))
      await writeFile(join(cli.folder, 'secrets', name), `${value}\n`)
    for (const name of ['migrate', 'serve', 'sync']) {
      const { args, env, livenessProbe, readinessProbe } = containerOf(named(name))
      const given = Object.fromEntries(
        env.map((one: { name: string; value: string }) => [
          one.name,
          one.value.replace('/run/secrets/fatura', join(cli.folder, 'secrets')),
        ]),
      )
      Object.assign(given, { STRIPE_API_BASE: 'http://127.0.0.1:9' })
      if (name === 'migrate') {
        assert.equal((await cli.run(args, { env: given })).code, 0)
        continue
      }
      // Ports are a test's own.
      Object.assign(given, { ADMIN_PORT: '0', ADMIN_HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0s' })
      const program = cli.start(
        args.map((arg: string) => (arg === '4011' ? '0' : arg)),
        { env: given },
      )
      const messages: Record<string, RegExp> = {
        http: /"address":"(http:[^"]+)","msg":"listening"/,
        admin: /"address":"(http:[^"]+)","msg":"listening for administration"/,
      }
      for (const { httpGet } of [livenessProbe, readinessProbe]) {
        const [, address] = await program.waitFor(messages[httpGet.port] ?? assert.fail(httpGet.port))
        assert.equal((await get(`${address}${httpGet.path}`)).status, 200, `${name} ${httpGet.path}`)
      }
      await program.stop()
    }
  })
})
