import { safeFileName } from '../pdf/file-name.ts'

/** Most file systems take 255 bytes; a browser may add to the name, as in "(1)". */
const maxNameBytes = 200

/** A download's name from an invoice number, after RFC 6266: plain ASCII for all, the true name where it differs. */
export function contentDisposition(number: string): string {
  const name = `${safeFileName(number, maxNameBytes - 4) || 'invoice'}.pdf`
  const ascii = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\x20-\x7e]/g, '_')
  const plain = `attachment; filename="${ascii}"`
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`
}

/** RFC 8187: what encodeURIComponent leaves but `filename*` may not hold is encoded too. */
function encodeExtended(text: string): string {
  return encodeURIComponent(text).replace(
    /['()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
