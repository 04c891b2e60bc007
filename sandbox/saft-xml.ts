/** Writes XML elements of a SAF-T file as text. */

export type Fields = { [name: string]: string | Fields | readonly Fields[] }

export function tag(name: string, fields: Fields): string {
  const inner = Object.entries(fields).map(([key, value]) =>
    typeof value === 'string'
      ? `<${key}>${escapeText(value)}</${key}>`
      : [value]
          .flat()
          .map(each => tag(key, each as Fields))
          .join(''),
  )
  return `<${name}>${inner.join('')}</${name}>`
}

function escapeText(text: string): string {
  return text.replace(/[&<>]/g, sign => ({ '&': '&amp;', '<': '&lt;' })[sign] ?? '&gt;')
}

export function unique<T>(all: readonly T[], keyOf: (one: T) => string): T[] {
  return [...new Map(all.map(one => [keyOf(one), one])).values()]
}

export function cents(amount: number): number {
  return Math.round(amount * 100)
}

export function money(amount: number): string {
  return (cents(amount) / 100).toFixed(2)
}
