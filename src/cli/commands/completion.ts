import { Argument, Command } from 'commander'
import { type Completed, shells } from './completion-scripts.ts'

export function completionCommand(): Command {
  return new Command('completion')
    .description('Print a script that completes commands and options in a shell.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .addHelpText(
      'after',
      `
To have it in every session:
  bash   fatura completion bash > ~/.local/share/bash-completion/completions/fatura
  zsh    fatura completion zsh > "\${fpath[1]}/_fatura"
  fish   fatura completion fish > ~/.config/fish/completions/fatura.fish

It completes the word fatura: after npx there is nothing to complete, so install it with npm install --global, or use an alias.`,
    )
    .action((shell: string, _options, command: Command) => {
      const root = command.parent ?? command
      process.stdout.write(shells[shell]?.(walk(root)) ?? '')
    })
}

/** Every command of the tree, the root first. */
function walk(command: Command, place = ''): Completed[] {
  const help = command.createHelp()
  const options = help.visibleOptions(command).map(({ long, short, required, argChoices, description }) => ({
    names: [long, short].filter(name => name !== undefined && name !== null),
    takesValue: required,
    choices: argChoices ?? [],
    description: firstSentence(description),
  }))
  const commands = command.commands.map(child => ({
    name: child.name(),
    description: firstSentence(child.description()),
  }))
  const [argument] = command.registeredArguments
  const takesArgument = argument !== undefined
  return [
    { place, options, commands, takesArgument, choices: argument?.argChoices ?? [] },
    ...command.commands.flatMap(child => walk(child, `${place}/${child.name()}`)),
  ]
}

/** A description short enough for a list. */
function firstSentence(text: string): string {
  return (/^.*?(?=[.:;] | \(env:|$)/.exec(text)?.[0] ?? text).replace(/\.$/, '')
}
