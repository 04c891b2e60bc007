/** Floor 0: node:http and the same bytes for everybody, read from a file at the start. */
import { readFileSync } from 'node:fs'
import { send, serve } from './listen.ts'

const body = readFileSync(process.argv[2] as string)
serve((_customerId, _question, response) => send(response, body))
