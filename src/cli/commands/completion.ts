/** Scripts that complete, one a shell, from a list of commands. Each finds the command in what was typed, then its words. */
import { Argument, type Command } from 'commander'
import { SettingsCommand } from '../settings/read-settings.ts'

const shells: Readonly<Record<string, (commands: readonly Completed[]) => string>> = {
  bash: writeBash,
  zsh: writeZsh,
  fish: writeFish,
}

export function completionCommand(): Command {
  return new SettingsCommand('completion')
    .description('Print a script that completes commands and options in a shell.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .notes(`To have it in every session:
  bash   fatura completion bash > ~/.local/share/bash-completion/completions/fatura
  zsh    fatura completion zsh > "\${fpath[1]}/_fatura"
  fish   fatura completion fish > ~/.config/fish/completions/fatura.fish

It completes the word fatura: after npx there is nothing to complete, so install it with npm install --global, or use an alias.`)
    .action((shell: string, _options, command: Command) => {
      const root = command.parent ?? command
      process.stdout.write(shells[shell]?.(walk(root)) ?? '')
    })
}

type Completed = ReturnType<typeof describe>

/** `place` is the command's names from the root on, as in /token/create; empty for the root. */
function describe(command: Command, place: string) {
  const [argument] = command.registeredArguments
  return {
    place,
    options: command
      .createHelp()
      .visibleOptions(command)
      .map(({ long, short, required, argChoices, description }) => ({
        names: [long, short].filter(name => name !== undefined && name !== null),
        takesValue: required,
        choices: argChoices ?? [],
        description: firstSentence(description),
      })),
    commands: command.commands.map(child => ({
      name: child.name(),
      description: firstSentence(child.description()),
    })),
    takesArgument: argument !== undefined,
    choices: argument?.argChoices ?? [],
  }
}

function walk(command: Command, place = ''): Completed[] {
  const below = command.commands.flatMap(child => walk(child, `${place}/${child.name()}`))
  return [describe(command, place), ...below]
}

function firstSentence(text: string): string {
  return (/^.*?(?=[.:;] | \(env:|$)/.exec(text)?.[0] ?? text).replace(/\.$/, '')
}

/** In single quotes, as bash and zsh read them. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

const placesOf = (commands: readonly Completed[]) => commands.map(({ place }) => place).filter(Boolean)

/** The words after which an option's value follows; and its values, where they are a closed list. */
function valuesOf(commands: readonly Completed[]) {
  const all = commands.flatMap(({ place, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ names, choices }) => ({ after: names.map(name => quote(`${place} ${name}`)), choices })),
  )
  const free = all.filter(({ choices }) => choices.length === 0).flatMap(({ after }) => after)
  return [...all.filter(({ choices }) => choices.length > 0), { after: free, choices: [] }]
}

function writeBash(commands: readonly Completed[]): string {
  const values = valuesOf(commands).map(({ after, choices }) =>
    choices.length === 0
      ? `    ${after.join('|')}) return ;;`
      : `    ${after.join('|')}) COMPREPLY=($(compgen -W ${quote(choices.join(' '))} -- "$current")); return ;;`,
  )
  const words = commands.map(({ place, options, ...rest }) => {
    const plain = [...rest.commands.map(({ name }) => name), ...rest.choices].join(' ')
    const flags = options.flatMap(({ names }) => names).join(' ')
    // For an argument, files are offered until a hyphen asks for options.
    const always = plain !== '' || !rest.takesArgument
    return `    ${quote(place)}) words=${quote(plain)} flags=${quote(flags)} always=${always} ;;`
  })
  return `# Completes fatura in bash. Written by: fatura completion bash
_fatura() {
  local current=\${COMP_WORDS[COMP_CWORD]} place= word words= flags= always=
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place/$word" in
      ${placesOf(commands).join('|')}) place=$place/$word ;;
    esac
  done
  case "$place \${COMP_WORDS[COMP_CWORD-1]}" in
${values.join('\n')}
  esac
  case "$place" in
${words.join('\n')}
  esac
  if [[ $current == -* ]]; then words=$flags; elif [[ -z $words && $always == true ]]; then words=$flags; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _fatura fatura
`
}

function writeZsh(commands: readonly Completed[]): string {
  const item = (name: string, description: string) =>
    quote(`${name.replaceAll(':', '\\:')}:${description.replaceAll(':', '\\:')}`)
  const values = valuesOf(commands).map(({ after, choices }) =>
    choices.length === 0
      ? `    (${after.join('|')}) _files; return ;;`
      : `    (${after.join('|')}) compadd -- ${choices.map(quote).join(' ')}; return ;;`,
  )
  const words = commands.map(({ place, options, ...rest }) => {
    const plain = [
      ...rest.commands.map(({ name, description }) => item(name, description)),
      ...rest.choices.map(quote),
    ]
    const flags = options.flatMap(({ names, description }) => names.map(name => item(name, description)))
    return `    (${quote(place)}) found=(${plain.join(' ')}) flags=(${flags.join(' ')}) files=${rest.takesArgument && plain.length === 0} ;;`
  })
  return `#compdef fatura
# Completes fatura in zsh. Written by: fatura completion zsh
_fatura() {
  local place= word files=
  local -a found flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place/$word" in
      (${placesOf(commands).join('|')}) place=$place/$word ;;
    esac
  done
  case "$place \${words[CURRENT-1]}" in
${values.join('\n')}
  esac
  case "$place" in
${words.join('\n')}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then _describe option flags
  elif [[ $files == true ]]; then _files
  elif (( \${#found} )); then _describe command found
  else _describe option flags; fi
}
if [[ $funcstack[1] == _fatura ]]; then _fatura "$@"; else compdef _fatura fatura; fi
`
}

function writeFish(commands: readonly Completed[]): string {
  const fishQuote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = commands.flatMap(({ place, options, ...rest }) => {
    const at = `complete -c fatura -n "__fatura_at '${place}'"`
    return [
      ...(rest.takesArgument && rest.choices.length === 0 ? [] : [`${at} -f`]),
      ...rest.commands.map(
        ({ name, description }) => `${at} -a ${fishQuote(name)} -d ${fishQuote(description)}`,
      ),
      ...(rest.choices.length === 0 ? [] : [`${at} -a ${fishQuote(rest.choices.join(' '))}`]),
      ...options.map(({ names, takesValue, choices, description }) => {
        const flags = names.map(name =>
          name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
        )
        const value = choices.length > 0 ? ` -x -a ${fishQuote(choices.join(' '))}` : takesValue ? ' -r' : ''
        return `${at} ${flags.join(' ')}${value} -d ${fishQuote(description)}`
      }),
    ]
  })
  return `# Completes fatura in fish. Written by: fatura completion fish
function __fatura_at
  set -l place ''
  for word in (commandline -opc)[2..]
    switch "$place/$word"
      case ${placesOf(commands).map(fishQuote).join(' ')}
        set place "$place/$word"
    end
  end
  test "$place" = "$argv[1]"
end
${lines.join('\n')}
`
}
