/** The rows of docs/configuration.md that tell of the settings. */
import { fileVariable, type SettingDefinition, settingNames, settings } from '../src/cli/settings/settings.ts'

const header = '| Setting | Default | Flag | Meaning |\n|---|---|---|---|\n'

/** The page with the table as it must be. */
export function withSettingsTable(page: string): string {
  const [before = '', rest = ''] = page.split(header)
  const after = rest.replace(/^(\|.*\n)*/, '')
  return `${before}${header}${settingNames.map(writeRow).join('')}${after}`
}

function writeRow(name: keyof typeof settings): string {
  const { default: value, flag, meaning }: SettingDefinition = settings[name]
  const variable = fileVariable(name)
  const file = variable === null ? '' : ` [File](#secrets-in-files): \`${variable}\`.`
  return `| \`${name}\` | \`${value}\` | ${flag === undefined ? 'none' : `\`${flag}\``} | ${meaning}${file} |\n`
}
