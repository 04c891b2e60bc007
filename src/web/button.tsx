import type { ButtonHTMLAttributes } from 'preact'

export function Button({ text, ...attributes }: ButtonHTMLAttributes & { text: string }) {
  return (
    <button type="button" {...attributes}>
      {text}
    </button>
  )
}
