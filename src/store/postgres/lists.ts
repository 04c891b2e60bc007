/** Lists of values, each as one text: the driver's arrays take longer to write, and the server longer to read. */

/** `joined`: texts without control characters other than a tab and a line's end. Folded ones are such, and JSON. */
export type ListType = 'bigint' | 'text' | 'joined'

export type ListValue = string | number | null

/** The end of each joined text but the last, and the stand-in for none. fatura.split_list reads them. */
const [end, none] = ['\r', '\f']

/** Null where every value is. */
export function writeList(type: ListType, values: readonly ListValue[]): string | null {
  if (values.every(value => value === null)) return null
  if (type === 'joined') return values.map(value => value ?? none).join(end)
  return `{${values.map(type === 'text' ? quote : (value: ListValue) => value ?? 'NULL').join(',')}}`
}

function quote(value: ListValue): string {
  if (value === null) return 'NULL'
  const text = String(value)
  return `"${/["\\]/.test(text) ? text.replaceAll(/["\\]/g, '\\$&') : text}"`
}
