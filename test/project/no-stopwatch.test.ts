/** `npm test` says whether it is right, on a machine as slow as it likes: no test but those of test/campaign/ compares a duration with a bound. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = new URL('../..', import.meta.url).pathname

const clock = String.raw`(?:performance|Date)\.now\(\)`
/** A clock's difference from a moment before; less so many seconds, it is a moment itself. */
const since = String.raw`(?<!- )${clock} - [a-zA-Z][\w.]*`
/** A comparison sign, of no arrow and no type. */
const compared = '(?<![=<>-])[<>](?![<>])=?'
/** What ends a difference before it is compared: a bracket, or a call of `Math`. */
const closed = String.raw`\)*\s*`

/** Names that are a duration wherever they are found. */
const durations = ['took', 'tookMs', 'slowest', 'slowestMs']
const quantiles = String.raw`(?:p\d\d|median|quantile|worst|longest)`

/** The lines of a source that compare a duration with something. */
function findStopwatches(source: string): string[] {
  const code = source.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
  const moments = namesOf(code, String.raw`(\w+) = ${clock}(?! [-+])`)
  const names = [...durations, ...namesOf(code, String.raw`(\w+) = (?:Math\.\w+\()?${since}`)]
  for (const moment of moments)
    names.push(...namesOf(code, String.raw`(\w+) = (?:Math\.\w+\()?(?:\w+ - ${moment}|${moment} - \w+)\b`))
  const name = String.raw`\b(?:\w+\.)*(?:${[...new Set(names)].join('|')})\b(?!\()`
  const moment = moments.length === 0 ? null : String.raw`\b(?:${moments.join('|')})\b`
  const difference = [
    since,
    ...(moment === null ? [] : [String.raw`${moment} - [\w.]+`, String.raw`[\w.]+ - ${moment}`]),
  ].join('|')
  const forbidden = new RegExp(
    [
      String.raw`\b(?:assertWithin|onThisMachine|measureSlowness)\b`,
      `(?:${difference})${closed}${compared}`,
      String.raw`${compared}\s*\(?(?:${difference})`,
      `${name}${closed}${compared}`,
      `${compared} ${name}`,
      String.raw`\b${quantiles}\([^()]*(?:\([^()]*\))?[^()]*\)${closed}${compared}`,
      String.raw`${compared} ${quantiles}\(`,
    ].join('|'),
  )
  return code.split('\n').filter(line => forbidden.test(line))
}

const namesOf = (code: string, pattern: string): string[] =>
  [...code.matchAll(new RegExp(pattern, 'g'))].map(([, name = '']) => name)

test('no test outside test/campaign/ compares a measured duration with a limit', () => {
  const files = globSync('test/**/*.ts', { cwd: root, exclude: ['**/node_modules', 'test/campaign'] })
  assert.ok(files.length > 100)
  const found = files
    .filter(file => !import.meta.url.endsWith(file))
    .flatMap(file =>
      findStopwatches(readFileSync(join(root, file), 'utf8')).map(line => `${file}: ${line.trim()}`),
    )
  assert.deepEqual(found, [])
})

test('the stopwatch check finds a compared duration in any notation', () => {
  for (const source of [
    'assertWithin(performance.now() - asked, 8_000)',
    'const bound = onThisMachine(1_000)',
    'assert.ok(performance.now() - began >= 990)',
    'assert.ok(Date.now() - startedAt > 12_000, "slower")',
    'assert.ok(1_000 > Date.now() - startedAt)',
    'while (Date.now() - from < 500) await ask()',
    'const took = performance.now() - asked\nassert.ok(took >= 9_900, "too early")',
    'const waited = Math.round(performance.now() - asked)\nassert.ok(least <= waited)',
    'const before = Date.now()\nconst after = Date.now()\nassert.ok(after - before < 50)',
    'const revoked = performance.now()\nfor (let asked = revoked; ; asked = performance.now())\n  assert.ok(asked - revoked < 1_000)',
    'const began = Date.now()\nconst passed = end - began\nassert.ok(passed < 5_000)',
    'assert.ok(samples.every(({ took }) => took < 100))',
    'assert.ok(sample.took <= 100)',
    'assert.ok(slowest < 3_000)',
    'assert.ok(p99(meanwhile) < Math.max(2 * p99(usual), 100))',
    'assert.ok(median(took.map(one => one.ms)) <= 50)',
    'assert.ok(100 > p95(meanwhile))',
  ])
    assert.equal(findStopwatches(source).length, 1, source)
})

test('the stopwatch check ignores times, calendar spans and stopped clocks', () => {
  for (const source of [
    'await createToken({ expires_at: Date.now() - 1_000 })',
    'const [created_at, expires_at] = [Date.now(), Date.now() + 86_400_000]',
    'const until = Date.now() + patience\nassert.ok(Date.now() < until, `waited in vain`)',
    'const before = Date.now()\nassert.ok(at >= before && at <= Date.now())',
    'const ask = () => Date.now() - 90_000',
    'assert.ok(failed_at > Date.now() - 60_000)',
    'assert.ok(Math.abs(at - Date.now() - ahead) < dayMs)',
    'assert.ok(clock.passedMs >= 10_000)',
    'const records = new Map<string, number>()',
    't.diagnostic("16 MB in " + (Date.now() - startedAt))',
    '// It took < 5 s.',
  ])
    assert.deepEqual(findStopwatches(source), [], source)
})
