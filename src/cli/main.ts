/** The command line. Each command has a file in `commands/`, and this file lists all of them. */
import { styleText } from 'node:util'
import { Command, CommanderError } from 'commander'
import { version } from '../http/package.ts'
import { StoreError } from '../store/store.ts'
import { leave } from './start/signals.ts'
import { CliError } from './terminal/cli-error.ts'
import { hideSecrets } from './terminal/hide-secrets.ts'
import { movingLine } from './terminal/progress.ts'

/**
 * All commands, in the order of the help. The value is the example in the command's help. It is null for `export`, whose notes hold several
 * examples.
 */
const examples: Readonly<Record<string, string | null>> = {
  demo: 'fatura demo',
  serve: 'fatura serve --port 8080',
  sync: 'fatura sync --once',
  up: 'STRIPE_API_KEY=rk_live_… fatura up --webhooks 4011',
  status: 'fatura status --json | jq .',
  health: 'fatura health --port 8080 && echo ready',
  account: 'fatura account show',
  'account show': 'fatura account show',
  'account change': 'fatura account change --confirm',
  doctor: 'fatura doctor --sample 100',
  reconcile:
    'fatura reconcile --month 2026-10 --timezone Europe/Lisbon \\\n    --format csv > differences.csv',
  report: 'fatura report vat --month 2026-10',
  'report vat': 'fatura report vat --month 2026-10 --format csv-pt > iva.csv',
  export: null,
  explain: 'fatura explain in_1pTrQz3RDco2wQ3rcB00005e',
  import: 'fatura import invoices.ndjson',
  token: 'fatura token create --customer cus_ana --name portal',
  'token create':
    'fatura token create --customer cus_ana --customer cus_rui \\\n    --name billing-page --expires 30d',
  'token list': 'fatura token list',
  'token revoke': 'fatura token revoke fat_BoaxW8AbZ71w',
  key: 'fatura key add shop-backend > link-key.json',
  'key add': 'fatura key add shop-backend > link-key.json',
  'key list': 'fatura key list',
  'key revoke': 'fatura key revoke key_BoaxW8AbZ71w',
  webhook: 'fatura webhook add https://app.example.com/hooks/invoices',
  'webhook add':
    'fatura webhook add https://app.example.com/hooks/invoices \\\n    --customers cus_ana,cus_rui',
  'webhook list': 'fatura webhook list --json | jq .',
  'webhook pause': 'fatura webhook pause wh_BoaxW8AbZ71w',
  'webhook replay': 'fatura webhook replay wh_BoaxW8AbZ71w --from 2026-11-01T00:00:00Z',
  'webhook remove': 'fatura webhook remove wh_BoaxW8AbZ71w',
  link: 'fatura link --customer cus_ana --ttl 30m --key link-key.json \\\n    --public-url https://billing.example.com',
  migrate: 'fatura migrate --database-url postgres://fatura_owner@127.0.0.1:5432/fatura',
  copy: 'fatura copy sqlite:data/fatura.db \\\n    postgres://fatura_owner:secret@127.0.0.1:5432/fatura',
  openapi: 'fatura openapi > openapi.json',
  sandbox: 'fatura sandbox --invoices 2000 --differences 21',
}

const program = new Command('fatura')
  .description(
    'Give customers their invoices over HTTP. Each invoice shows its state in the payment platform beside the state of its certified document.',
  )
  .version(version)
  .addHelpText(
    'after',
    `
First minutes:
  Try it with sample data, which is removed at the end:
    fatura demo
  Load your own invoices:
    fatura import invoices.ndjson
  Make a token, which is printed only once:
    fatura token create --customer cus_… --name app
  Serve them on http://127.0.0.1:3000:
    fatura serve

Settings are environment variables, or lines of the file .env.
"fatura serve --help" lists the settings of the service.`,
  )

// A reader of the pipe that ends early, such as `head`, closes the pipe (EPIPE). That is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

try {
  for (const name of namesFor(process.argv[2] ?? '')) {
    const { [`${name}Command`]: create } = await import(`./commands/${name}.ts`)
    program.addCommand(create())
  }
  for (const command of [program, ...program.commands, ...program.commands.flatMap(c => c.commands)]) {
    const example = examples[nameOf(command).slice('fatura '.length)]
    if (example) command.addHelpText('after', `\nExample:\n  ${example}`)
    command
      .exitOverride()
      .showHelpAfterError(`(${nameOf(command)} --help lists its arguments and options)`)
      .configureOutput({ writeErr: text => process.stderr.write(hideSecrets(text)) })
  }
  program.hook('preAction', (_, command) => refuseFlagAsValue(command))
  await program.parseAsync()
} catch (error) {
  movingLine.clear()
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    // For an unexpected failure only the stack is printed. Other properties of the error may hold data of customers.
    const fault = `unexpected failure, please report it: ${error instanceof Error ? error.stack : error}`
    const isExpected = error instanceof CliError || error instanceof StoreError
    // `styleText` writes red only where colours can be shown. Node reads NO_COLOR and FORCE_COLOR.
    const prefix = styleText('red', 'fatura:', { stream: process.stderr })
    process.stderr.write(`${prefix} ${hideSecrets(isExpected ? error.message : fault)}\n`)
    process.exitCode = error instanceof CliError ? error.exitCode : process.exitCode || 1
    leave()
  }
}

/** Returns only the command that was asked for, so that a command starts fast. Returns every command for the help. */
function namesFor(asked: string): string[] {
  if (asked === '--version' || asked === '-V') return []
  const names = Object.keys(examples).filter(name => !name.includes(' '))
  return names.includes(asked) ? [asked] : names
}

/**
 * Refuses `--output --force`, because commander would take `--force` as the file name. A user who means that name writes
 * `--output=--force`.
 */
function refuseFlagAsValue(command: Command): void {
  for (const option of command.options.filter(({ required }) => required)) {
    const value = command.getOptionValue(option.attributeName())
    const isTyped = command.getOptionValueSource(option.attributeName()) === 'cli'
    for (const text of [value].flat().filter(each => isTyped && /^--[a-z]/.test(String(each))))
      if (!process.argv.includes(`${option.long}=${text}`))
        command.error(`error: option '${option.flags}' has no value: '${text}' is read as the next option`)
  }
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
