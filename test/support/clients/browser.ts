/** A real Chromium: the one that CHROMIUM_PATH names, one from npm, or one that is installed. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'

/** The Chromium of npm and its fonts, as scripts/install-tools.js unpacks them. */
const unpacked = join(import.meta.dirname, '../../../tools/node_modules/.cache/chromium')

/** The package from npm holds a program for x64 alone. */
const installed = [
  'chromium',
  'chromium-headless-shell',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
].map(name => `/usr/bin/${name}`)

/**
 * Why there is no browser to test with, or false. On x64 there is always one, from npm; elsewhere npm has none, so that a machine
 * without an installed one cannot run these tests: they are skipped, and say this.
 */
export const lacksChromium: string | false =
  process.env.CHROMIUM_PATH || isInNpm() || installed.some(path => existsSync(path))
    ? false
    : `npm has no Chromium for ${process.platform} on ${process.arch}, and none is installed: set CHROMIUM_PATH to one, or ` +
      'install one, as with apt-get install chromium-headless-shell'

function isInNpm(): boolean {
  return process.arch === 'x64' && process.platform === 'linux'
}

/** Closed with the test. The package's own flags are not used: they switch the browser's security off. */
export async function startBrowser(t: Pick<TestContext, 'after'>): Promise<Browser> {
  const executablePath = findChromium()
  try {
    const browser = await chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
      env: { ...process.env, ...environmentOf(executablePath) },
    })
    t.after(() => browser.close())
    return browser
  } catch (error) {
    throw new Error(`${executablePath} does not start. Set CHROMIUM_PATH to a Chromium that does.`, {
      cause: error,
    })
  }
}

export function findChromium(): string {
  const { CHROMIUM_PATH: given } = process.env
  if (given) return given
  if (isInNpm()) return join(unpacked, 'chromium')
  const found = installed.find(path => existsSync(path))
  if (found !== undefined) return found
  throw new Error(lacksChromium || 'There is no Chromium.')
}

/** The same fonts for every Chromium; and the libraries that npm's one needs and a small system lacks. */
function environmentOf(program: string): Record<string, string> {
  const fonts = { FONTCONFIG_FILE: join(unpacked, 'fonts.conf') }
  return program.startsWith(unpacked) ? { ...fonts, LD_LIBRARY_PATH: join(unpacked, 'al2023/lib') } : fonts
}

/** Requests and problems of a page. */
export interface Watched {
  /** Every request, by its URL; data: and blob: are none. */
  requests: string[]
  /** Errors of the console and of scripts, and what the Content-Security-Policy refused. */
  problems: string[]
}

/** Call it before the page goes anywhere. */
export async function watchPage(page: Page): Promise<Watched> {
  const watched: Watched = { requests: [], problems: [] }
  page.on('request', request => {
    if (/^(https?|wss?):/.test(request.url())) watched.requests.push(request.url())
  })
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning')
      watched.problems.push(`${message.type()}: ${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', error => watched.problems.push(String(error)))
  await page.exposeFunction('tellViolation', (what: string) => watched.problems.push(what))
  await page.addInitScript(`addEventListener('securitypolicyviolation', event =>
    tellViolation('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`)
  return watched
}

let axe: string | undefined

/** What axe-core finds against WCAG 2.2 AA. */
export async function findViolations(page: Page): Promise<string[]> {
  axe ??= await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await page.evaluate(axe)
  const found = await page.evaluate(`axe.run(document, {
    resultTypes: ['violations'],
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html.slice(0, 200) + ' ' + (any[0]?.message ?? ''))))`)
  return found as string[]
}

/** For those who want to look: SCREENSHOTS names a folder. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS)
    await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true })
}
