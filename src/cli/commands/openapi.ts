import { Command } from 'commander'

export const openapiCommand = () =>
  new Command('openapi').description("Print the API's OpenAPI 3.1 document.").action(async () => {
    // Only this command needs the code that builds the API's description, so no other command loads that code.
    const { describeApi } = await import('../../http/describe-api.ts')
    process.stdout.write(await describeApi())
  })
