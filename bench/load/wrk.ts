/** The load by wrk where it is installed: it takes a fraction of the CPU that a load in JavaScript takes. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { LoadOptions, LoadResult } from './load.ts'
import { cpuSince } from './process-cost.ts'

export function hasWrk(): boolean {
  try {
    execFileSync('wrk', ['--version'], { stdio: 'ignore' })
    return true
  } catch (error) {
    // It exits with 1 after it said its version.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

export async function runWrk(options: LoadOptions): Promise<LoadResult> {
  const { address, seconds, connections } = options
  const folder = mkdtempSync(join(tmpdir(), 'fatura-load-'))
  try {
    const script = join(folder, 'load.lua')
    writeFileSync(script, writeScript(options))
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, address]
    const begun = performance.now()
    const child = spawn('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const pid = child.pid as number
    let busy = 0
    const watching = setInterval(() => {
      const used = cpuSince(new Map(), pid)
      // At its end there is nothing left to read.
      if (used > 0) busy = used / 1000 / (performance.now() - begun)
    }, 100)
    const said = await text(child.stdout)
    clearInterval(watching)
    const { requests, duration, failed } = JSON.parse(said.slice(said.lastIndexOf('{')))
    return { answered: requests, rate: requests / (duration / 1e6), failed, busy }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What is asked is put together before the load begins. A JSON text of plain ASCII is also one of Lua. */
function writeScript({ requests }: LoadOptions): string {
  const asked = requests.map(({ path, headers }) => {
    const fields = Object.entries(headers).map(([name, value]) => `[${quote(name)}]=${quote(value)}`)
    return `{${quote(path)}, {${fields.join(', ')}}}`
  })
  return `
    local asked = {${asked.join(',\n')}}
    local texts = {}
    local turn = 0
    function init()
      for place, one in ipairs(asked) do texts[place] = wrk.format("GET", one[1], one[2]) end
    end
    function request()
      turn = turn % #texts + 1
      return texts[turn]
    end
    function done(summary)
      local errors = summary.errors
      local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
      io.write(string.format('{"requests":%d,"duration":%d,"failed":%d}', summary.requests, summary.duration, failed))
    end`
}

function quote(value: string): string {
  if (!/^[\x20-\x7e]*$/.test(value)) throw new Error('The load is of plain ASCII only.')
  return JSON.stringify(value)
}
