#!/usr/bin/env node
// Plain JavaScript, so that a Node too old for the rest can still say so.
const major = Number(process.versions.node.split('.')[0])
if (major >= 24) {
  import('../src/cli/main.ts')
} else {
  process.stderr.write(
    `fatura: needs Node 24 or newer, and this is ${process.version}. In a checkout, "npm ci" brings one: run npx fatura …\n`,
  )
  process.exitCode = 1
}
