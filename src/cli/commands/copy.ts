import { statSync } from 'node:fs'
import { formatCount, type KindName, kindNames, kinds } from '../../store/contents.ts'
import { checkTarget, copyStore, type Digest, digestStore } from '../../store/copy-store.ts'
import {
  findAddressProblem,
  migrateStore,
  openOperatorStore,
  openWriteStore,
  storeFileOf,
  useStore,
} from '../../store/engines.ts'
import type { OperatorStore, WriteStore } from '../../store/store.ts'
import { loadEnvFile } from '../settings/environment.ts'
import { SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createProgress, printResult, printWaiting } from '../terminal/progress.ts'

export const copyCommand = () =>
  new SettingsCommand('copy')
    .description(
      'Copy one store to another (SQLite or PostgreSQL), and compare the two. If it stops early, run it again to continue.',
    )
    .argument('<from>', 'the address of the store to read, for example sqlite:data/fatura.db')
    .argument('<to>', 'the address of the store to fill, for example postgres://user:password@host:5432/name')
    .option(
      '--json',
      'when both stores are equal, print one JSON object with the numbers of written and stored records and the hash',
    )
    .notes(`Before you start, stop all programs that write to one of the two stores.
Everything is copied: invoices and their lines, documents and their ties to invoices, the journal, deleted invoices, tokens and streams.
First the stores are compared. If the target holds a record that the source does not have, nothing is written. Then only missing and different records are written, so a copy that stopped early continues where it was. At the end both stores are read completely, and their counts and hashes are compared. A token that is revoked in one of the stores is revoked in the target.`)
    .action(runCopy)

async function runCopy(fromUrl: string, toUrl: string, options: { json?: true }): Promise<void> {
  if (fromUrl === toUrl) throw new CliError('Nothing to copy: the two addresses are the same.')
  for (const [name, url] of Object.entries({ from: fromUrl, to: toUrl })) {
    const problem = findAddressProblem(url)
    if (problem !== null) throw new CliError(`<${name}> ${problem}.`, { exitCode: 2 })
  }
  if (isSameFile(fromUrl, toUrl)) throw new CliError('Nothing to copy: the two addresses name the same file.')
  // The `.env` file may hold PostgreSQL variables such as PGPASSWORD. The driver reads such variables for the parts that an address leaves
  // out.
  loadEnvFile()
  await useStore(openOperatorStore(fromUrl), async from => {
    await migrateStore(toUrl, undefined, { onWait: printWaiting })
    const opening = openWriteStore(toUrl, { onWait: printWaiting })
    await useStore(opening, to => copyAndCompare(from, to, options.json === true))
  })
}

/** Compares device and inode, because relative paths and links give one file several paths. */
function isSameFile(fromUrl: string, toUrl: string): boolean {
  const [from, to] = [fromUrl, toUrl].map(url => statSync(storeFileOf(url) ?? '', { throwIfNoEntry: false }))
  return from !== undefined && to !== undefined && from.dev === to.dev && from.ino === to.ino
}

async function copyAndCompare(from: OperatorStore, to: WriteStore, asJson: boolean): Promise<void> {
  const progress = createProgress('things')
  const report = (step: string) => (kind: KindName, done: number) =>
    progress.update(`(${kinds[kind].names[1]}) ${step}`, done)
  try {
    await checkTarget(from, to, report('checked'))
    const { written, alike, removed } = await copyStore(from, to, report('copied'))
    if (!asJson)
      printResult(
        `Copied: ${written} written, ${alike} already there, ${removed} removed (${progress.pace(written + alike)}).\n`,
      )
    const source = await digestStore(from, report('of the source compared'))
    const target = await digestStore(to, report('of the target compared'))
    if (source.sha256 !== target.sha256)
      throw new CliError(
        `The stores differ: ${describe(source)} in the source, ${describe(target)} in the target. Another program may have written to one of them. Run the same command again.`,
      )
    printResult(
      asJson
        ? jsonLine({ written, alike, removed, ...source })
        : `Compared, equal on both sides: ${describe(source)}, sha256 ${source.sha256}.\n`,
    )
  } finally {
    progress.end()
  }
}

function describe({ counts }: Digest): string {
  return kindNames
    .filter(name => counts[name] > 0)
    .map(name => formatCount(name, counts[name]))
    .join(', ')
}
