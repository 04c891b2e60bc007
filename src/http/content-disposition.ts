// Nothing that could end the header, leave the folder, hide the ending, or turn the reading direction.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}/\\:*?"<>|]+/gu

/** Most file systems take 255 bytes; a browser may add to the name, as in "(1)". */
const maxNameBytes = 200

/** A download's name from an invoice number, after RFC 6266: plain ASCII for all, the true name where it differs. */
export function contentDisposition(number: string): string {
  const safe = number.normalize('NFKC').replace(unsafe, '-')
  const name = `${trim(shorten(trim(safe), maxNameBytes - 4)) || 'invoice'}.pdf`
  const ascii = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\x20-\x7e]/g, '_')
  const plain = `attachment; filename="${ascii}"`
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`
}

function trim(text: string): string {
  return text.replace(/^[.\s-]+|[.\s-]+$/g, '')
}

/** Cut between two characters as people see them: an accent stays with its letter. */
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

/** RFC 8187: what encodeURIComponent leaves but `filename*` may not hold is encoded too. */
function encodeExtended(text: string): string {
  return encodeURIComponent(text).replace(
    /['()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
