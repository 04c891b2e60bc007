import { Transform } from 'node:stream'
import { SourceError } from '../sources.ts'
import { pdfPassed } from '../telemetry.ts'

const signatures = {
  'application/pdf': Buffer.from('%PDF-'),
  'image/png': Buffer.from('89504e470d0a1a0a', 'hex'),
  /** Any: its reader checks it. */
  '*/*': Buffer.alloc(0),
}
export type FileType = keyof typeof signatures

/** Passes a file through; fails once it is none of its type or too large. Calls `proven` once, with the first bytes that show it. */
export function createPdfCheck(
  maximumBytes: number,
  proven: () => void,
  type: FileType = 'application/pdf',
): Transform {
  const signature = signatures[type]
  let head: Buffer | null = Buffer.alloc(0)
  let received = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length
      if (received > maximumBytes) return done(tooLarge())
      if (type === 'application/pdf' && pdfPassed.hasSubscribers) pdfPassed.publish({ bytes: chunk.length })
      if (head === null) return done(null, chunk)
      head = Buffer.concat([head, chunk])
      if (!startsLike(head, signature)) return done(noPdf())
      if (head.length < signature.length) return done()
      const start = head
      head = null
      done(null, start)
      proven()
    },
    flush: done => done(head === null ? null : noPdf()),
  })
}

function startsLike(head: Buffer, signature: Buffer): boolean {
  const length = Math.min(head.length, signature.length)
  return head.subarray(0, length).equals(signature.subarray(0, length))
}

function noPdf(): SourceError {
  return new SourceError('failed', 'The response is not a PDF.')
}

export function tooLarge(): SourceError {
  return new SourceError('failed', 'The PDF is larger than allowed.')
}
