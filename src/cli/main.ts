/** The command line: one file a command, all listed here. */
import { styleText } from 'node:util'
import { Command, CommanderError } from 'commander'
import { version } from '../package.ts'
import { StoreError } from '../store/store.ts'
import { examples } from './commands/examples.ts'
import { CliError } from './terminal/cli-error.ts'
import { hideSecrets } from './terminal/hide-secrets.ts'
import { movingLine } from './terminal/progress.ts'

/** In the order of the help; each is a file. Only the given command is loaded; all are for the help and for completion. */
const names =
  `demo serve sync up status health account doctor reconcile export explain import token key endpoint link
  migrate copy openapi sandbox completion`.split(/\s+/)

const program = new Command('fatura')
  .description(
    "A customer's invoices over HTTP: the payment platform's state and the certified document's, side by side.",
  )
  .version(version)
  .addHelpText(
    'after',
    `
First minutes:
  fatura demo                                     try it with sample data; leaves nothing behind
  fatura import invoices.ndjson                   load your own invoices
  fatura token create --customer cus_… --name app make a token; it is printed once
  fatura serve                                    serve them on http://127.0.0.1:3000

Settings are environment variables, or lines of a file .env; "fatura serve --help" lists them.`,
  )

// A pipe into a program that ends early, such as head, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

try {
  for (const name of namesFor(process.argv[2] ?? '')) {
    const { [`${name}Command`]: create } = await import(`./commands/${name}.ts`)
    program.addCommand(create())
  }
  for (const command of [program, ...program.commands, ...program.commands.flatMap(c => c.commands)]) {
    const example = examples[nameOf(command).slice('fatura '.length)]
    if (example !== undefined) command.addHelpText('after', `\nExample:\n  ${example}`)
    command
      .exitOverride()
      .showHelpAfterError(`(${nameOf(command)} --help shows what it takes)`)
      .configureOutput({ writeErr: text => process.stderr.write(hideSecrets(text)) })
  }
  await program.parseAsync()
} catch (error) {
  movingLine.clear()
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    // Of a fault of ours only its words, and where it happened: an error may carry data beside them.
    const fault = `unexpected failure, please report it: ${error instanceof Error ? error.stack : error}`
    const isExpected = error instanceof CliError || error instanceof StoreError
    // Red where people see colours: Node's `styleText` honours NO_COLOR and FORCE_COLOR.
    const prefix = styleText('red', 'fatura:', { stream: process.stderr })
    process.stderr.write(`${prefix} ${hideSecrets(isExpected ? error.message : fault)}\n`)
    process.exitCode = error instanceof CliError ? error.exitCode : process.exitCode || 1
  }
}

function namesFor(asked: string): string[] {
  if (asked === '--version' || asked === '-V') return []
  return names.includes(asked) && asked !== 'completion' ? [asked] : names
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
