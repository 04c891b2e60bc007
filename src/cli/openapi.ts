import { Command } from 'commander'
import { describeApi } from '../http/openapi.ts'

export function openapiCommand(): Command {
  return new Command('openapi').description("Print the API's OpenAPI 3.1 document.").action(async () => {
    process.stdout.write(await describeApi())
  })
}
