/** What a start says of a wrong setting, without a start: every command reads its settings in the same way. */
import assert from 'node:assert/strict'
import { readSettings } from '../../../src/cli/settings/read-settings.ts'
import type { Setting } from '../../../src/cli/settings/settings.ts'
import { CliError } from '../../../src/cli/terminal/cli-error.ts'

/** The one line, as it follows `fatura: `. Fails the test when the value is taken. */
export function refusalOf(setting: Setting, value: string): string {
  const { [setting]: usual } = process.env
  process.env[setting] = value
  try {
    readSettings({}, [setting], { envFile: false })
  } catch (error) {
    assert.ok(error instanceof CliError, String(error))
    assert.match(error.message, /^[^\n]+$/)
    return error.message
  } finally {
    if (usual === undefined) delete process.env[setting]
    else process.env[setting] = usual
  }
  assert.fail(`${setting} may be ${value}`)
}
