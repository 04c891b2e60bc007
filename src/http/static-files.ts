/** Serves files beside the API. The compressed forms of a file are made once, at its first request. */
import { hash } from 'node:crypto'
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { isHeldByClient } from './conditional.ts'

/** Encodings in order of preference. */
const encodings = ['br', 'gzip', 'identity'] as const
type Encoding = (typeof encodings)[number]

export interface FileDescription {
  path: string
  type: string
  /** The plain content. A file that is too large to keep in all forms has its compressed forms only. */
  content: string | Buffer | { br: Buffer; gzip: Buffer }
  /** Sources that the file's Content-Security-Policy allows, by directive. All other sources are forbidden. */
  policy?: Record<string, string>
  /** Whether the file's path changes with its content. A browser then never asks for the file again. */
  isImmutable?: boolean
}

export type StaticFile = ReturnType<typeof makeStaticFile>
type Variant = ReturnType<typeof makeVariants>[number]

export function makeStaticFile(description: FileDescription) {
  const { path, type, content, policy, isImmutable = false } = description
  let variants: readonly Variant[] | undefined
  return {
    path,
    headers: {
      'content-type': type,
      'cache-control': isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
      // The file's own Content-Security-Policy replaces the policy of the API's answers.
      ...(policy && { 'content-security-policy': allow(policy) }),
    },
    get variants() {
      variants ??= makeVariants(content)
      return variants
    },
  }
}

function allow(sources: Record<string, string>): string {
  const directives = Object.entries({
    'default-src': "'none'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
    ...sources,
  })
  return directives.map(([name, source]) => `${name} ${source}`).join('; ')
}

function makeVariants(content: FileDescription['content']) {
  const bodies: Partial<Record<Encoding, Buffer>> =
    typeof content === 'object' && 'br' in content ? content : compress(Buffer.from(content))
  return encodings.flatMap(encoding => {
    const body = bodies[encoding]
    return body === undefined ? [] : { encoding, body, etag: `"${nameContent(body)}"` }
  })
}

/** Returns a short name that differs for different content. */
export function nameContent(content: string | Buffer): string {
  return hash('sha256', content, 'hex').slice(0, 16)
}

/** A compressed form that saves nothing is left out. */
function compress(identity: Buffer): Partial<Record<Encoding, Buffer>> {
  const br = brotliCompressSync(identity, { params: { [zlib.BROTLI_PARAM_QUALITY]: 5 } })
  const gzip = gzipSync(identity, { level: 9 })
  const saves = (body: Buffer) => body.length < identity.length
  return { ...(saves(br) && { br }), ...(saves(gzip) && { gzip }), identity }
}

export function addStaticFiles(app: FastifyInstance, files: readonly StaticFile[]): void {
  for (const file of files)
    app.get(file.path, { schema: { hide: true } }, async (request, reply) => {
      const { encoding, body, etag } = choose(file.variants, request.headers['accept-encoding'])
      // With CORS, the answer also depends on the origin.
      const vary = [reply.getHeader('vary') ?? [], 'accept-encoding'].flat().join(', ')
      reply.headers(file.headers).headers({ vary, etag })
      if (isHeldByClient(request, etag)) return reply.code(304).removeHeader('content-type').send()
      if (encoding !== 'identity') reply.header('content-encoding', encoding)
      return reply.send(body)
    })
}

/**
 * Chooses a variant by Accept-Encoding (RFC 9110, section 12.5.3). A client that accepts none gets the last variant,
 * which is the plainest.
 */
function choose(variants: readonly Variant[], accepted = ''): Variant {
  const codings = new Map<string, boolean>()
  for (const part of accepted.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = part.split(';').map(word => word.trim())
    codings.set(coding, !parameters.some(parameter => /^q=0(\.0*)?$/.test(parameter)))
  }
  const isTaken = ({ encoding }: Variant) =>
    codings.get(encoding) ?? (codings.get('*') === true && encoding !== 'identity')
  return variants.find(isTaken) ?? (variants.at(-1) as Variant)
}
