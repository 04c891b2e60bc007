/** The command line: one file a command, all listed here. */
import { Command, CommanderError } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { StoreError } from '../store/store.ts'
import { accountCommand } from './commands/account.ts'
import { copyCommand } from './commands/copy.ts'
import { demoCommand } from './commands/demo.ts'
import { doctorCommand } from './commands/doctor.ts'
import { examples } from './commands/examples.ts'
import { explainCommand } from './commands/explain.ts'
import { importCommand } from './commands/import.ts'
import { migrateCommand } from './commands/migrate.ts'
import { openapiCommand } from './commands/openapi.ts'
import { reconcileCommand } from './commands/reconcile.ts'
import { sandboxCommand } from './commands/sandbox.ts'
import { serveCommand } from './commands/serve.ts'
import { statusCommand } from './commands/status.ts'
import { syncCommand } from './commands/sync.ts'
import { tokenCommand } from './commands/token.ts'
import { upCommand } from './commands/up.ts'
import { CliError } from './terminal/cli-error.ts'
import { hideTokens } from './terminal/hide-tokens.ts'
import { movingLine } from './terminal/moving-line.ts'

const program = new Command('fatura')
  .description(
    "A customer's invoices over HTTP: the payment platform's state and the certified document's, side by side.",
  )
  .version(manifest.version)
  .addCommand(demoCommand())
  .addCommand(serveCommand())
  .addCommand(syncCommand())
  .addCommand(upCommand())
  .addCommand(statusCommand())
  .addCommand(accountCommand())
  .addCommand(doctorCommand())
  .addCommand(reconcileCommand())
  .addCommand(explainCommand())
  .addCommand(importCommand())
  .addCommand(tokenCommand())
  .addCommand(migrateCommand())
  .addCommand(copyCommand())
  .addCommand(openapiCommand())
  .addCommand(sandboxCommand())
  .addHelpText(
    'after',
    `
First minutes:
  fatura demo                                     look at it with sample data; leaves nothing behind
  fatura import invoices.ndjson                   load your own invoices
  fatura token create --customer cus_… --name app make a token; it is printed once
  fatura serve                                    serve them on http://127.0.0.1:3000

Settings are environment variables, or lines of a file .env; "fatura serve --help" lists them.`,
  )

// What is piped into a program that ends early, such as head, is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

try {
  for (const command of [program, ...program.commands, ...program.commands.flatMap(c => c.commands)]) {
    const example = examples[nameOf(command).slice('fatura '.length)]
    if (example !== undefined) command.addHelpText('after', `\nExample:\n  ${example}`)
    command
      .exitOverride()
      .showHelpAfterError(`(${nameOf(command)} --help shows what it takes)`)
      .configureOutput({ writeErr: text => process.stderr.write(hideTokens(text)) })
  }
  await program.parseAsync()
} catch (error) {
  movingLine.clear()
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else if (error instanceof CliError || error instanceof StoreError) {
    process.stderr.write(hideTokens(`fatura: ${error.message}\n`))
    process.exitCode = error instanceof CliError ? error.exitCode : 1
  } else {
    // A fault of ours. Only its words and where it happened: an error may carry data beside them.
    process.stderr.write(
      hideTokens(
        `fatura: unexpected failure, please report it: ${error instanceof Error ? error.stack : error}\n`,
      ),
    )
    process.exitCode ||= 1
  }
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
