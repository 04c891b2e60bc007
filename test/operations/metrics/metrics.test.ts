/** `/metrics` of the admin port, as Prometheus scrapes it: of one process, and of a service that synchronizes. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parse as parseYaml } from 'yaml'
import { createDocuments } from '../../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../../sandbox/invoicexpress/server.ts'
import { createSyncWorld, readStored } from '../../support/checks/sync-truth.ts'
import { createCli, eventually, type Program } from '../../support/clients/cli.ts'
import { ask } from '../../support/clients/load.ts'
import { quickClock } from '../../support/worlds/quick-clock.ts'

const root = join(import.meta.dirname, '../../..')
const token = 'an-admin-token-of-the-test'
const admin = { ADMIN_PORT: '0', ADMIN_TOKEN: token }

interface Series {
  name: string
  labels: Record<string, string>
  value: number
}

interface Scrape {
  text: string
  series: Series[]
  /** All metrics, those without a value included. */
  names: Set<string>
  sum(name: string, labels?: Record<string, string>): number
}

async function findAdmin(program: Pick<Program, 'waitFor'>): Promise<string> {
  const [, address = ''] = await program.waitFor(
    /"address":"(http:[^"]+)","msg":"listening for administration"/,
  )
  return address
}

async function scrape(program: Pick<Program, 'waitFor'>): Promise<Scrape> {
  const url = `${await findAdmin(program)}/metrics`
  // From the 21st wrong one within a minute on, 429.
  const { status: refused } = await ask(url, 'another-token')
  assert.ok([401, 429].includes(refused), 'not without the token')
  const { status, headers, text } = await ask(url, token)
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  return parse(text)
}

/** Strictly: a line that does not fit is a failure. */
function parse(text: string): Scrape {
  const series: Series[] = []
  const names = new Set<string>()
  for (const line of text.split('\n')) {
    const [, help] = /^# HELP ([a-z0-9_]+) \S/.exec(line) ?? []
    if (help !== undefined) names.add(help)
    if (line === '' || /^# (HELP|TYPE) [a-z0-9_]+ \S/.test(line)) continue
    const [, name = '', labels = '', value = ''] =
      /^([a-z0-9_]+)(?:\{((?:[a-z]+="[^"\\]*",?)*)\})? (\S+)$/.exec(line) ?? assert.fail(line)
    const pairs = [...labels.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, label, text]) => [label, text])
    series.push({ name, labels: Object.fromEntries(pairs), value: Number(value.replace('Nan', 'NaN')) })
  }
  const keys = series.map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`)
  assert.equal(new Set(keys).size, keys.length, 'no series comes twice')
  return {
    ...{ text, series, names },
    sum: (wanted, labels = {}) =>
      series
        .filter(
          one =>
            one.name === wanted &&
            Object.entries(labels).every(([label, value]) => one.labels[label] === value),
        )
        .reduce((total, { value }) => total + value, 0),
  }
}

const list = '/api/v1/client/:customerId/invoices'

describe('the metrics of fatura', { concurrency: true }, () => {
  it('count requests by route and status, and contain no text of clients', async t => {
    const cli = await createCli(t)
    const serving = await cli.serve(['--migrate'], { env: admin })
    assert.equal((await scrape(serving)).sum('fatura_http_requests_total'), 0)
    for (let turn = 0; turn < 30; turn++) {
      await ask(`${serving.address}/api/v1/client/cus_${turn}/invoices?q=${turn}`, 'none')
      await ask(`${serving.address}/no/such/${turn}`, 'none')
    }
    const { sum, series } = await scrape(serving)
    assert.equal(sum('fatura_http_requests_total', { route: list, status: '401' }), 30)
    assert.equal(sum('fatura_http_request_seconds_count', { route: list }), 30)
    assert.equal(sum('fatura_http_request_seconds_bucket', { route: list, le: '+Inf' }), 30)
    assert.equal(sum('fatura_http_requests_total', { route: 'none', status: '404' }), 30)
    assert.equal(sum('fatura_store_up'), 1)
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const [build] = series.filter(({ name }) => name === 'fatura_build_info')
    const labels = { version, engine: 'sqlite', node: process.versions.node }
    assert.deepEqual(build, { name: 'fatura_build_info', labels, value: 1 })
    assert.ok(sum('process_resident_memory_bytes') > 1e7)
    assert.ok(series.length <= 500, `${series.length} series`)
    await serving.stop()
  })

  it('of a running fatura up have at most 500 series, and alert rules, dashboard and docs name exactly these', async t => {
    const world = await createSyncWorld(t, { invoices: 40 })
    const documents = createDocuments(world.account)
    const ix = await startInvoiceXpressSandbox({ documents, apiKey: 'canaryKeyOfInvoicexpress' })
    t.after(() => ix.close())
    const running = world.start(['up', '--port', '0', '--webhooks', '0'], {
      env: {
        ...admin,
        // Between two months of documents it pauses.
        ...quickClock(10),
        INVOICEXPRESS_API_KEY: 'canaryKeyOfInvoicexpress',
        INVOICEXPRESS_API_BASE: ix.address,
      },
    })
    await eventually('both systems were read to their end', async () => {
      const { series } = await scrape(running)
      const age = series.find(({ name }) => name === 'fatura_freshness_seconds')?.value ?? Number.NaN
      return age >= 0
    })
    const [, address] = await running.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
    await ask(`${address}/api/v1/client/cus_1/invoices`, 'none')
    const healthy = await scrape(running)
    for (const query of [...dashboardQueries(), ...ruleQueries()]) assertNotEmpty(query, healthy.series)

    const [, webhooks] = await running.waitFor(/"port":(\d+)},"msg":"receiving webhooks"/)
    await fetch(`http://127.0.0.1:${webhooks}/`, { method: 'POST', body: '{}' })

    const { text, series, names, sum } = await scrape(running)
    assert.ok(sum('fatura_upstream_calls_total', { system: 'Stripe', outcome: 'ok' }) > 1)
    assert.ok(sum('fatura_upstream_calls_total', { system: 'InvoiceXpress', outcome: 'ok' }) > 1)
    await eventually(
      'no call waits any more',
      async () => (await scrape(running)).sum('fatura_upstream_calls_waiting') === 0,
    )
    assert.equal(sum('fatura_webhooks_total', { status: '400' }), 1)
    const stored = (await readStored(world.url)).records.size
    assert.ok(sum('fatura_invoices_applied_total', { outcome: 'changed' }) >= stored && stored > 0)
    const metricsUrl = `${await findAdmin(running)}/metrics`
    const appliedEvents = async () =>
      parse((await ask(metricsUrl, token)).text).sum('fatura_events_applied_total')
    const applied = await appliedEvents()
    world.account.change('finalize')
    await eventually('the event of a change is applied', async () => (await appliedEvents()) > applied)
    assert.ok(
      series.some(({ name, labels }) => name === 'fatura_stream_lag_seconds' && labels.stream === 'ix:open'),
    )
    assert.equal(sum('fatura_stream_failing'), 0)
    assert.equal(sum('fatura_records_corrected'), 0)
    assert.ok(sum('fatura_paid_invoices_without_document') > 0, 'the sandbox has some, from months ago')
    assert.ok(series.length <= 500, `${series.length} series`)

    const own = [...names].filter(name => name.startsWith('fatura_'))
    assert.ok(own.length > 15)
    const read = (path: string) => readFileSync(join(root, path), 'utf8')
    const namesIn = (text: string) =>
      new Set(
        [...text.matchAll(/\b(?:fatura|nodejs|process)_[a-z0-9_]+/g)].map(([name]) =>
          names.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ''),
        ),
      )
    const [rules, dashboard, docs] = [
      namesIn(read('ops/prometheus/rules.yml')),
      namesIn(read('ops/grafana/fatura.json')),
      namesIn(read('docs/admin.md')),
    ]
    for (const name of [...rules, ...dashboard, ...docs]) assert.ok(names.has(name), `there is no ${name}`)
    for (const name of own) {
      assert.ok(dashboard.has(name), `${name} is not on the dashboard`)
      assert.ok(docs.has(name), `${name} is not in docs/admin.md`)
    }
    checkByPromtool(t, text)
    await running.stop()
  })
})

function dashboardQueries(): string[] {
  const { panels } = JSON.parse(readFileSync(join(root, 'ops/grafana/fatura.json'), 'utf8')) as {
    panels: { targets?: { expr: string }[] }[]
  }
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
}

function ruleQueries(): string[] {
  const { groups } = parseYaml(readFileSync(join(root, 'ops/prometheus/rules.yml'), 'utf8')) as {
    groups: { rules: { expr: string }[] }[]
  }
  return groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))
}

/** Each selector of the query selects something, unless "or" follows it. Figures of the rules themselves and of Prometheus are not scraped. */
function assertNotEmpty(query: string, series: readonly Series[]): void {
  const selectors = query.matchAll(
    /\b((?:fatura|nodejs|process)_\w+)(?:\{([^}]*)\})?(?:\[[^\]]+\])?(\)* or )?/g,
  )
  for (const [, name, given = '', alternative] of selectors) {
    const matchers = [...given.matchAll(/(\w+)(=~|!=|=)"([^"]*)"/g)]
    const isSelected = ({ labels }: Series) =>
      matchers.every(([, label = '', operator, text = '']) => {
        const value = labels[label] ?? ''
        if (operator === '=~') return new RegExp(`^(?:${text})$`).test(value)
        return operator === '=' ? value === text : value !== text
      })
    if (alternative === undefined)
      assert.ok(
        series.some(one => one.name === name && isSelected(one)),
        `${name}{${given}} is empty, in: ${query}`,
      )
  }
}

/** Prometheus' own checker, where it is installed. */
function checkByPromtool(t: { diagnostic(message: string): void }, text: string): void {
  const { error, status, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  })
  if (error) {
    t.diagnostic('promtool is not installed: the text was not checked by it')
    return
  }
  // 3: it would name some metrics of Node's and of the process otherwise.
  assert.ok(status === 0 || status === 3, stderr)
  assert.doesNotMatch(stderr, /fatura_/)
}

describe('the alert rules', () => {
  for (const args of [
    ['check', 'rules', 'ops/prometheus/rules.yml'],
    ['test', 'rules', 'ops/prometheus/rules.test.yml', 'ops/prometheus/rules-over-hours.test.yml'],
  ])
    it(`pass promtool ${args.join(' ')}`, t => {
      const { error, status, stdout, stderr } = spawnSync('promtool', args, {
        cwd: root,
        encoding: 'utf8',
        // A quarter of its work would be to collect its garbage, and to share it among the cores.
        env: { ...process.env, GOGC: '400', GOMAXPROCS: '1' },
      })
      if (error) return t.skip('promtool is not installed: apt install prometheus')
      assert.equal(status, 0, stdout + stderr)
    })
})
