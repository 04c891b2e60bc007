/** Lists of values, each as one text: the driver's arrays take longer to write, and the server longer to read. */
import type { Value } from '../contents.ts'

/** `joined`: texts without control characters other than a tab and a line's end. Folded ones are such, and JSON. */
export type ListType = 'bigint' | 'text' | 'joined'

/** The end of each joined text but the last, and the stand-in for none. fatura.split_list reads them. */
const [end, none] = ['\r', '\f']

/** Null where every value is. */
export function writeList(type: ListType, values: readonly Value[]): string | null {
  if (values.every(value => value === null)) return null
  if (type === 'joined') return values.map(value => value ?? none).join(end)
  return `{${values.map(type === 'text' ? quote : (value: Value) => value ?? 'NULL').join(',')}}`
}

function quote(value: Value): string {
  if (value === null) return 'NULL'
  const text = String(value)
  return `"${/["\\]/.test(text) ? text.replaceAll(/["\\]/g, '\\$&') : text}"`
}
