/** Describes the API for language models, after llmstxt.org: what it is, how to call it, and where to read more. */
import {
  type ApiDocument,
  endSentence,
  type ListedOperation,
  listErrors,
  listOperations,
  nameOf,
} from './api-document.ts'

export function writeLlmsText(document: ApiDocument): string {
  const { info, components } = document
  const operations = listOperations(document)
  const secured = operations.filter(({ security }) => security.length > 0)
  return `# ${info.title}

> ${info.summary} ${info.description}

- Every request is GET with \`Authorization: Bearer <token>\`. ${components.securitySchemes.bearer.description}
- Amounts end in \`_cents\` and are integers in the currency's smallest unit: 1230 is 12.30 EUR, but 1230 JPY.
- \`status\` is the payment platform's state of an invoice; \`ix_sync_state\` and \`ix_status\` are the state of its certified document. The two are independent.
- A list has at most 50 records a page. Continue until \`page\` equals \`total_pages\`. A page above the last returns the last page.
- \`ETag\` with \`If-None-Match\` gives 304 while nothing of the customer's invoices changed.
- After 429 and 503, wait for \`Retry-After\` seconds.

## Operations

${secured.map(operation => writeOperation(operation, components.schemas)).join('\n')}

## Errors

\`{"error": {"code", "message", "param"?, "request_id"}}\`. Decide by \`code\`.

${listErrors(operations)
  .map(({ code, status, meaning }) => `- \`${code}\` (${status}): ${meaning}`)
  .join('\n')}

## Reference

- [OpenAPI 3.1 document](/api/v1/openapi.json): every operation, parameter, field and error
- [Reference to try](/docs): with requests that can be sent
`
}

function writeOperation(
  { path, summary, description, parameters }: ListedOperation,
  schemas: ApiDocument['components']['schemas'],
): string {
  const query = parameters
    .filter(parameter => parameter.in === 'query')
    .map(({ name, description, schema: { $ref = '' } }) => {
      const values = schemas[nameOf($ref)]?.enum
      return `  - \`${name}\`: ${description}${values === undefined ? '' : ` One of ${values.join(', ')}.`}`
    })
  return [`- \`GET ${path}\`: ${endSentence(summary)} ${description}`, ...query].join('\n')
}
