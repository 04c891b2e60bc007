/** Writes the table of settings into docs/configuration.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { withSettingsTable } from './settings-table.ts'

const file = new URL('../docs/configuration.md', import.meta.url)
writeFileSync(file, withSettingsTable(readFileSync(file, 'utf8')))
process.stdout.write('Wrote the settings into docs/configuration.md.\n')
