import { Command } from 'commander'

export const openapiCommand = () =>
  new Command('openapi').description("Print the API's OpenAPI 3.1 document.").action(async () => {
    // Only this command needs the code that builds the document, so only this command loads it.
    const { describeApi } = await import('../../http/describe-api.ts')
    process.stdout.write(await describeApi())
  })
