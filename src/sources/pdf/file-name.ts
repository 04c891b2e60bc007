// Characters that could end a header, leave the folder, hide the file's extension or change the reading direction.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}/\\:*?"<>|]+/gu

/** Returns an empty text when nothing safe remains of `text`. */
export function safeFileName(text: string, maxBytes: number): string {
  const safe = text.normalize('NFKC').replace(unsafe, '-')
  return trim(shorten(trim(safe), maxBytes))
}

function trim(text: string): string {
  return text.replace(/^[.\s-]+|[.\s-]+$/g, '')
}

/** Cuts between two visible characters, so that an accent stays with its letter. */
function shorten(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text
  let short = ''
  let bytes = 0
  for (const { segment } of new Intl.Segmenter('en').segment(text)) {
    bytes += Buffer.byteLength(segment)
    if (bytes > maxBytes) break
    short += segment
  }
  return short
}
