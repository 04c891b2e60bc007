/**
 * Installs the packages that only the checks, tests and benchmarks use: `tools/` has a manifest and a lock file of its own, so that
 * `npm ci` stays small. Does nothing when the installed packages are those of the lock file.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const root = join(import.meta.dirname, '..')
const tools = join(root, 'tools')
const lockFile = readFileSync(join(tools, 'package-lock.json'), 'utf8')
/** A copy of the lock file that the packages were installed from. */
const installedLockFile = join(tools, 'node_modules/.installed-lock.json')

if (!existsSync(installedLockFile) || readFileSync(installedLockFile, 'utf8') !== lockFile) {
  process.stderr.write('Installing the tools of the tests into tools/: once, about 150 MB to download …\n')
  installPackages()
  await unpackChromium()
  writeFileSync(installedLockFile, lockFile)
}

// Node and tsc look for packages in the folders above a file: these links bring tools/ there.
for (const folder of ['test', 'bench']) {
  const link = join(root, folder, 'node_modules')
  if (!existsSync(link)) symlinkSync('../tools/node_modules', link)
}

function installPackages() {
  // By this Node, which is the locked one: npm's own may be older than some of the packages want, and npm would warn.
  const { npm_execpath: npm } = process.env
  const [program = 'npm', ...script] = npm === undefined ? [] : [process.execPath, npm]
  const options = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync(program, [...script, ...options], { cwd: tools, stdio: 'inherit' })
  if (status === 0) return
  process.stderr.write('The tools of the tests are not installed: npm’s message above says why.\n')
  process.exit(1)
}

/**
 * Unpacks the Chromium of npm, its libraries and its fonts. The fonts also serve an installed Chromium, so that pages look alike on
 * every machine. The package's own fonts.conf names folders of another machine: this writes one for the folder they lie in.
 */
async function unpackChromium() {
  const folder = join(tools, 'node_modules/.cache/chromium')
  const packed = join(tools, 'node_modules/@sparticuz/chromium')
  const fontsConf = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(folder, 'fonts')}</dir>
  <cachedir>${join(folder, 'fonts-cache')}</cachedir>
</fontconfig>
`
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'fonts.conf'), fontsConf)
  // The package unpacks into the folder for temporary files.
  process.env.TMPDIR = folder
  const { inflate } = await import(pathToFileURL(join(packed, 'build/index.js')).href)
  const isForThisMachine = process.platform === 'linux' && process.arch === 'x64'
  const archives = isForThisMachine ? ['chromium.br', 'swiftshader.tar.br', 'al2023.tar.br'] : []
  for (const archive of ['fonts.tar.br', ...archives]) await inflate(join(packed, 'bin', archive))
}
