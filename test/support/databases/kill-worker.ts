/** A server of this machine that is killed as by a power cut, and started again. Linux alone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runSql } from './run-sql.ts'

/** Whoever sets it has no other use of the cluster meanwhile. */
export const mayKillWorkers = Boolean(process.env.TEST_CITUS_KILL)

export interface Killable {
  url: string
  /** Ends all of its processes at once. */
  fall(): Promise<void>
  /** Starts it; resolves when it takes connections. */
  rise(): Promise<void>
}

/** It is started again when the test ends, if it was not before. */
export async function openKillable(t: TestContext, url: string): Promise<Killable> {
  const { rows } = await runSql(
    url,
    `SELECT current_setting('data_directory') AS folder, setting AS programs FROM pg_config WHERE name = 'BINDIR'`,
  )
  const { folder, programs } = rows[0]
  const { uid, gid } = await stat(folder)
  let isUp = true
  let env: Record<string, string> = {}
  let server = 0
  async function rise(): Promise<void> {
    if (isUp) return
    // As long as nobody asked for its exit code, the next one takes it for running.
    while (existsSync(`/proc/${server}`)) await sleep(20)
    const log = join(folder, 'log-after-kill')
    const start = spawn(join(programs, 'pg_ctl'), ['-D', folder, '-l', log, '-w', 'start'], {
      ...(process.getuid?.() === 0 && { uid, gid }),
      cwd: '/',
      env,
      stdio: 'ignore',
    })
    const [code] = await once(start, 'exit')
    if (code !== 0) throw new Error(`The worker did not start again: see ${log}`)
    isUp = true
  }
  t.after(rise)
  return {
    url,
    async fall() {
      const [first = ''] = (await readFile(join(folder, 'postmaster.pid'), 'utf8')).split('\n')
      server = Number(first)
      if (!(await readFile(`/proc/${server}/cmdline`, 'utf8')).includes(folder))
        throw new Error(`Process ${server} is not the server of ${folder}.`)
      // Whose it is and where it finds certificates stays as it was.
      const told = await readFile(`/proc/${server}/environ`, 'utf8')
      env = Object.fromEntries(told.split('\0').map(each => each.split(/=(.*)/s, 2)))
      const all = [server, ...(await childrenOf(server))]
      isUp = false
      for (const pid of all) endNow(pid)
      while ((await Promise.all(all.map(isThere))).includes(true)) await new Promise(setImmediate)
    },
    rise,
  }
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
  const parents = await Promise.all(pids.map(pid => readStat(pid)))
  return pids.filter((_, i) => parents[i]?.parent === parent)
}

/** Null when the process is gone. What has ended and was not asked for its exit code counts as gone. */
async function readStat(pid: number): Promise<{ parent: number } | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const [state, parent] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return text === '' || state === 'Z' ? null : { parent: Number(parent) }
}

async function isThere(pid: number): Promise<boolean> {
  return (await readStat(pid)) !== null
}

/** Of a server's children some may have just ended by themselves. */
function endNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
