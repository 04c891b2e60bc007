import { Command } from 'commander'

export const openapiCommand = () =>
  new Command('openapi').description("Print the API's OpenAPI 3.1 document.").action(async () => {
    // Loaded here alone: no other command needs what derives the document.
    const { describeApi } = await import('../../http/describe-api.ts')
    process.stdout.write(await describeApi())
  })
