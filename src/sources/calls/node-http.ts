/**
 * Node's `http`, for everything in here that uses it. Imported as an ES module, it loads Node's `fetch` as well, which takes
 * longer than Node's own start.
 */
export const { Agent, createServer, METHODS, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http')
