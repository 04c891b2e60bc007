#!/usr/bin/env node
// Plain JavaScript, so that a Node too old for the rest can still say so.
import { existsSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const major = Number(process.versions.node.split('.')[0])
// A checkout runs from its source. A package holds what was compiled: Node strips no types below node_modules.
const source = new URL('../src/cli/main.ts', import.meta.url)
if (major < 24) {
  stop(
    `needs Node 24 or newer, and this is ${process.version}. "npm install node@24" in this folder brings one (in a checkout, "npm ci" does): then run npx fatura …`,
  )
} else if (!existsSync(new URL('../build/stripe.cjs', import.meta.url))) {
  stop('this checkout is not built. "npm ci" builds it, with its development dependencies.')
} else {
  // A start takes a third of the time once its modules are compiled. Where this folder cannot be written, nothing is kept.
  const kept = fileURLToPath(new URL('../node_modules/.cache/fatura', import.meta.url))
  module.enableCompileCache(kept)
  // For the threads that this process starts: they begin with its environment, and keep nothing otherwise.
  process.env.NODE_COMPILE_CACHE ??= kept
  import(existsSync(source) ? source.href : '../dist/src/cli/main.js')
}

/** @param {string} why */
function stop(why) {
  process.stderr.write(`fatura: ${why}\n`)
  process.exitCode = 1
}
