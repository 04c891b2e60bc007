/** Scripts that complete, one a shell, from a list of commands. Each finds the command in what was typed, then its words. */
import { Argument, type Command } from 'commander'
import { SettingsCommand } from '../settings/read-settings.ts'

const shells: Readonly<Record<string, (commands: readonly Completed[]) => string>> = {
  bash: writeBash,
  zsh: writeZsh,
  fish: writeFish,
}

export const completionCommand = () =>
  new SettingsCommand('completion')
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

/** For bash and zsh alike: finds the words and options that may follow, with their descriptions behind a colon. */
function writeSearch(commands: readonly Completed[]): string {
  const item = (name: string, description: string) => quote(`${name}:${description.replaceAll(':', '\\:')}`)
  const values = commands.flatMap(({ place, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ names, choices }) => {
        const after = names.map(name => quote(`${place} ${name}`)).join('|')
        return `    ${after}) found=(${choices.map(quote).join(' ')}) files=${choices.length === 0} ;;`
      }),
  )
  const words = commands.map(({ place, options, takesArgument, ...rest }) => {
    const found = [
      ...rest.commands.map(({ name, description }) => item(name, description)),
      ...rest.choices.map(quote),
    ]
    const flags = options.flatMap(({ names, description }) => names.map(name => item(name, description)))
    const files = takesArgument && found.length === 0
    return `    ${quote(`${place} `)}*) found=(${found.join(' ')}) flags=(${flags.join(' ')}) files=${files} ;;`
  })
  return `  local place= word= files=
  local -a found flags
  for word in "\${typed[@]}"; do
    case "$place/$word" in
      ${placesOf(commands).join('|')}) place=$place/$word ;;
    esac
  done
  case "$place $word" in
${[...values, ...words].join('\n')}
  esac`
}

/** Where nothing is found, bash itself offers files. */
function writeBash(commands: readonly Completed[]): string {
  return `# Completes fatura in bash. Written by: fatura completion bash
_fatura() {
  local current=\${COMP_WORDS[COMP_CWORD]}
  local -a typed=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
${writeSearch(commands)}
  if [[ $current == -* || ( $files == false && \${#found[@]} == 0 ) ]]; then found=("\${flags[@]}"); fi
  COMPREPLY=($(compgen -W "\${found[*]%%:*}" -- "$current"))
}
complete -o default -F _fatura fatura
`
}

function writeZsh(commands: readonly Completed[]): string {
  return `#compdef fatura
# Completes fatura in zsh. Written by: fatura completion zsh
_fatura() {
  local -a typed=("\${(@)words[2,CURRENT-1]}")
${writeSearch(commands)}
  if [[ \${words[CURRENT]} == -* ]] && (( \${#flags} )); then _describe option flags
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
