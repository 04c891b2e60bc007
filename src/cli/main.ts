/** The command line: one file a command, all listed here. */
import { styleText } from 'node:util'
import { Command, CommanderError } from 'commander'
import { version } from '../package.ts'
import { StoreError } from '../store/store.ts'
import { examples } from './commands/examples.ts'
import { CliError } from './terminal/cli-error.ts'
import { hideSecrets } from './terminal/hide-secrets.ts'
import { movingLine } from './terminal/progress.ts'

/** In the order of the help. Only the given command is loaded; all are for the help and for completion. */
const commands: Record<string, () => Promise<Command>> = {
  demo: async () => (await import('./commands/demo.ts')).demoCommand(),
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  sync: async () => (await import('./commands/sync.ts')).syncCommand(),
  up: async () => (await import('./commands/up.ts')).upCommand(),
  status: async () => (await import('./commands/status.ts')).statusCommand(),
  health: async () => (await import('./commands/health.ts')).healthCommand(),
  account: async () => (await import('./commands/account.ts')).accountCommand(),
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand(),
  reconcile: async () => (await import('./commands/reconcile.ts')).reconcileCommand(),
  export: async () => (await import('./commands/export.ts')).exportCommand(),
  explain: async () => (await import('./commands/explain.ts')).explainCommand(),
  import: async () => (await import('./commands/import.ts')).importCommand(),
  token: async () => (await import('./commands/token.ts')).tokenCommand(),
  key: async () => (await import('./commands/key.ts')).keyCommand(),
  endpoint: async () => (await import('./commands/endpoint.ts')).endpointCommand(),
  link: async () => (await import('./commands/link.ts')).linkCommand(),
  migrate: async () => (await import('./commands/migrate.ts')).migrateCommand(),
  copy: async () => (await import('./commands/copy.ts')).copyCommand(),
  openapi: async () => (await import('./commands/openapi.ts')).openapiCommand(),
  sandbox: async () => (await import('./commands/sandbox.ts')).sandboxCommand(),
  completion: async () => (await import('./commands/completion.ts')).completionCommand(),
}

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
  for (const load of loadersOf(process.argv[2] ?? '')) program.addCommand(await load())
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

function loadersOf(asked: string): (() => Promise<Command>)[] {
  if (asked === '--version' || asked === '-V') return []
  return Object.entries(commands)
    .filter(([name]) => name === asked || asked === 'completion' || !Object.hasOwn(commands, asked))
    .map(([, load]) => load)
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
