/** The MCP server's library, in the one file that scripts/build.ts makes of it: the package itself is needed only for its types. */
import type * as Library from '@modelcontextprotocol/server'
import { locateFile } from '../package.ts'

export const sdk: typeof Library = await import(locateFile('build/mcp.js').href)
