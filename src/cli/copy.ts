import { Command } from 'commander'
import { migrateStore, openWriteStore } from '../store/open-store.ts'
import type { WriteStore } from '../store/store.ts'
import { type CopyResult, copyStore, digestStore } from '../sync/copy-store.ts'
import { CliError } from './cli-error.ts'
import { createProgress } from './progress.ts'

export function copyCommand(): Command {
  return new Command('copy')
    .description(
      'Copy a store to another, of whatever engine, and compare the two. Run it again to go on after a stop.',
    )
    .argument('<from>', 'the address of the store to read, like sqlite:data/fatura.db')
    .argument('<to>', 'the address of the store to fill, like postgres://user:password@host:5432/name')
    .addHelpText(
      'after',
      `
Invoices, lines, tokens and freshness are copied. Only what is missing or differs is written, so a copy that was stopped
goes on where it was cut off. In the end both stores are read whole and their counts and hashes compared. What the target
holds and the source does not is left alone, and makes the comparison fail. Stop other writers of both stores meanwhile.`,
    )
    .action(runCopy)
}

async function runCopy(fromUrl: string, toUrl: string): Promise<void> {
  if (fromUrl === toUrl) throw new CliError('The two addresses are the same; there is nothing to copy.')
  const from = await openWriteStore(fromUrl)
  try {
    await migrateStore(toUrl)
    const to = await openWriteStore(toUrl)
    try {
      await copyAndCompare(from, to)
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
}

async function copyAndCompare(from: WriteStore, to: WriteStore): Promise<void> {
  const progress = createProgress('invoices')
  try {
    const result = await copyStore(from, to, done => progress.update('copied', done))
    process.stdout.write(`Copied: ${describe(result)} (${progress.pace(result.written + result.alike)}).\n`)
    const source = await digestStore(from, done => progress.update('of the source compared', done))
    const target = await digestStore(to, done => progress.update('of the target compared', done))
    if (source.sha256 !== target.sha256)
      throw new CliError(
        result.extra > 0
          ? `The target holds ${result.extra} more than the source; what it holds alone was left there. Copy into an empty store.`
          : `The stores differ: ${source.invoices} and ${target.invoices} invoices. Did something write meanwhile? Run it again.`,
      )
    process.stdout.write(`Compared: ${source.invoices} invoices on both sides, sha256 ${source.sha256}.\n`)
  } finally {
    progress.end()
  }
}

function describe({ written, alike }: CopyResult): string {
  return `${written} invoices written, ${alike} there already`
}
