/** Node's `http` module. An ES import of it would also load Node's `fetch`, which takes longer than the start of Node itself. */
export const { Agent, createServer, METHODS, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http')
