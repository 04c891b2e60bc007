/** A real MCP client at a service. It validates what a tool returns by the tool's own schema. */

import type { TestContext } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Answer, Service } from '../worlds/service.ts'

export interface ToolAnswer {
  isError: boolean
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test states what it expects of it
  data: any
  links: string[]
  bytes: number
}

export interface McpClient {
  client: Client
  call(name: string, given?: Record<string, unknown>): Promise<ToolAnswer>
}

/** `legacy` is the handshake of 2025, `auto` the revision of 2026-07-28 where the server has it. */
export async function openMcpClient(
  t: TestContext,
  address: string,
  token: string,
  mode: 'legacy' | 'auto' = 'auto',
): Promise<McpClient> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', address), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  })
  await client.connect(transport)
  t.after(() => client.close())
  // A client that knows the tools' schemas validates by them.
  await client.listTools()
  return {
    client,
    async call(name, given = {}) {
      const result = await client.callTool({ name, arguments: given })
      const [first] = result.content
      return {
        isError: result.isError === true,
        text: first?.type === 'text' ? first.text : '',
        data: result.structuredContent,
        links: result.content.flatMap(part => (part.type === 'resource_link' ? [part.uri] : [])),
        bytes: Buffer.byteLength(JSON.stringify(result)),
      }
    },
  }
}

export interface PostOptions {
  token?: string | null
  method?: string
  params?: object
  headers?: Record<string, string>
  /** Instead of a request of this method. */
  body?: string
}

/** One request of the revisions of 2025, which needs no handshake where there are no sessions. */
export function postMcp(
  { get }: Pick<Service, 'get'>,
  { method = 'tools/list', params = {}, headers = {}, token = null, body }: PostOptions,
): Promise<Answer> {
  return get('/mcp', {
    ...{ method: 'POST', token, body: body ?? JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) },
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...headers,
    },
  })
}
