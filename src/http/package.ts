/** Locates files of the package by its name. A checkout and an installed package keep the code at different depths. */
import { readFileSync } from 'node:fs'

const manifest = new URL(import.meta.resolve('fatura/package.json'))

export const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }

export function locateFile(path: string): URL {
  return new URL(path, manifest)
}
