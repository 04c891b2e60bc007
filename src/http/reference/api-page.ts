/** The API reference as one page without a script: for those who read offline, print, or allow no scripts. */
import {
  type Answer,
  type ApiDocument,
  endSentence,
  type ListedOperation,
  listErrors,
  listOperations,
  nameOf,
  type Schema,
} from './api-document.ts'

const style = `:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
code,pre{font:.875em/1.45 ui-monospace,monospace}
pre{overflow-x:auto;padding:.75rem;border:1px solid;border-radius:.25rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:start;vertical-align:top;padding:.25rem .5rem;border-block-end:1px solid}
h2{margin-block-start:3rem}
h3 code{overflow-wrap:anywhere}`

export function writeApiPage(document: ApiDocument): { page: string; style: string } {
  const { info, tags, components } = document
  const operations = listOperations(document)
  const schemas = Object.entries(components.schemas)
  const fieldsBefore = new Set<string>()
  const errors = listErrors(operations).map(({ code, status, meaning }) => [
    `<code id="${code}">${code}</code>`,
    status,
    formatText(meaning),
  ])
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(info.title)} API reference</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<h1>${escapeHtml(info.title)} API reference</h1>
<p>Version ${escapeHtml(info.version)}. ${formatText(info.description)}</p>
<p>The same for programs: <a href="/api/v1/openapi.json">OpenAPI document</a>; for language models: <a href="/llms.txt">llms.txt</a>.</p>
<nav aria-label="Contents"><ul>
${operations.map(({ operationId, summary }) => `<li><a href="#${operationId}">${escapeHtml(summary)}</a>`).join('\n')}
<li><a href="#schemas">Schemas</a>
<li><a href="#errors">Errors</a>
</ul></nav>
<h2>Authentication</h2>
<p>Send <code>Authorization: Bearer &lt;token&gt;</code>. ${formatText(components.securitySchemes.bearer.description)}</p>
${tags
  .map(({ name, description }) => {
    const own = operations.filter(operation => operation.tags.includes(name))
    const shared = listShared(own)
    return `<h2>${escapeHtml(name)}</h2>
<p>${formatText(description)} Errors of each: ${shared.errors.map(writeCode).join(', ')}. Headers of each: ${shared.headers.join(', ')}.</p>
${own.map((operation, i) => writeOperation(operation, shared, own.slice(0, i))).join('\n')}`
  })
  .join('\n')}
<h2 id="schemas">Schemas</h2>
${schemas.map(([name, schema]) => writeSchema(name, schema, fieldsBefore)).join('\n')}
<h2 id="errors">Errors</h2>
<p>Every error has the shape <a href="#ErrorBody">ErrorBody</a>. Decide by <code>code</code>.</p>
${writeTable(['Code', 'Status', 'Meaning'], errors)}
</html>
`
  return { page, style }
}

/** Parts of all operations of a group, shown once. */
function listShared(operations: readonly ListedOperation[]) {
  const inAll = (lists: readonly string[][]) =>
    (lists[0] ?? []).filter(one => lists.every(others => others.includes(one)))
  const answers = operations.flatMap(({ responses }) =>
    Object.entries(responses).flatMap(([status, answer]) => (Number(status) < 400 ? answer : [])),
  )
  return {
    errors: inAll(operations.map(operation => listErrors([operation]).map(({ code }) => code))),
    headers: inAll(answers.map(({ headers = {} }) => Object.keys(headers))),
  }
}

/** A part of the path is described where it is first named. */
function writeOperation(
  operation: ListedOperation,
  shared: ReturnType<typeof listShared>,
  before: readonly ListedOperation[],
): string {
  const { path, operationId, summary, description, security, parameters, responses } = operation
  const isNew = ({ name, in: place }: { name: string; in: string }) =>
    place !== 'path' || !before.some(other => other.path.includes(`{${name}}`))
  const rows = parameters
    .filter(isNew)
    .map(({ name, in: place, required, description, schema, example }) => [
      `<code>${escapeHtml(name)}</code>`,
      `${place}${required && place !== 'path' ? ', required' : ''}`,
      writeType(schema),
      formatText(description) +
        (example === undefined ? '' : ` Example: <code>${escapeHtml(String(example))}</code>`),
    ])
  const errors = listErrors([operation]).filter(({ code }) => !shared.errors.includes(code))
  const answers = Object.entries(responses)
    .filter(([status]) => Number(status) < 400)
    .map(([status, answer]) => `<li>${status}: ${writeAnswer(answer, shared.headers)}`)
  const refusals = [...Map.groupBy(errors, ({ status }) => status)].map(
    ([status, alike]) => `<li>${status}: ${alike.map(({ code }) => writeCode(code)).join(', ')}`,
  )
  return `<h3 id="${operationId}"><code>GET ${escapeHtml(path)}</code></h3>
<p><b>${escapeHtml(endSentence(summary))}</b> ${formatText(description)}${security.length === 0 ? ' No token needed.' : ''} Operation <code>${operationId}</code>.</p>
${rows.length === 0 ? '' : writeTable(['Parameter', 'In', 'Type', 'Meaning'], rows)}
<ul>
${[...answers, ...refusals].join('\n')}
</ul>`
}

function writeCode(code: string): string {
  return `<a href="#${code}">${code}</a>`
}

function writeAnswer({ description, headers, content = {} }: Answer, shared: readonly string[]): string {
  const [[type, media] = []] = Object.entries(content)
  const body = media === undefined ? '' : ` <code>${type}</code>: ${writeType(media.schema)}.`
  const names = Object.keys(headers ?? {}).filter(name => !shared.includes(name))
  return `${formatText(description)}${body}${names.length === 0 ? '' : ` Headers: ${names.join(', ')}.`}`
}

/** A field that another schema has alike, further up, is only named. `fieldsBefore` holds them, and gets these. */
function writeSchema(
  name: string,
  { description = '', properties, enum: values, examples }: Schema,
  fieldsBefore: Set<string>,
): string {
  const fields = Object.entries(properties ?? {}).flatMap(([field, schema]) => writeField(field, schema))
  const isAlike = (cells: string[]) => (fieldsBefore.has(cells.join()) ? 'alike' : 'rows')
  const { rows = [], alike = [] } = Object.groupBy(fields, isAlike)
  for (const cells of rows) fieldsBefore.add(cells.join())
  const [example] = examples ?? []
  return `<h3 id="${name}">${name}</h3>
<p>${formatText(description)}${values === undefined ? '' : ` One of ${values.map(value => `<code>${escapeHtml(value)}</code>`).join(', ')}.`}</p>
${rows.length === 0 ? '' : writeTable(['Field', 'Type', 'Meaning'], rows)}${alike.length === 0 ? '' : `\n<p>As above: ${alike.map(([field]) => field).join(', ')}.</p>`}
${example === undefined ? '' : `<pre>${escapeHtml(JSON.stringify(example, null, 1))}</pre>`}`
}

function writeField(name: string, schema: Schema): string[][] {
  return [
    [`<code>${escapeHtml(name)}</code>`, writeType(schema), formatText(schema.description ?? '')],
    ...Object.entries(schema.properties ?? {}).flatMap(([inner, value]) =>
      writeField(`${name}.${inner}`, value),
    ),
  ]
}

function writeType({ $ref, type = '', format, items, enum: values }: Schema): string {
  if ($ref !== undefined) return `<a href="#${nameOf($ref)}">${nameOf($ref)}</a>`
  if (items !== undefined) return `array of ${writeType(items)}`
  if (values !== undefined) return values.map(value => `<code>${escapeHtml(value)}</code>`).join(', ')
  return [type].flat().join(' or ') + (format === undefined ? '' : `, ${format}`)
}

function writeTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return `<div class="wide"><table>
<tr>${head.map(cell => `<th scope="col">${cell}`).join('')}
${rows.map(cells => `<tr>${cells.map(cell => `<td>${cell}`).join('')}`).join('\n')}
</table></div>`
}

/** The document's texts are Markdown, of which they use code alone. */
function formatText(text: string): string {
  return escapeHtml(text).replace(/`([^`]*)`/g, '<code>$1</code>')
}

/** For the text of an element, not for an attribute. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`)
}
