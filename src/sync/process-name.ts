/** The name of a process, for people and for another process of the same machine, which can see whether it still runs. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** As in "process 4711 on web-1 (5f0c2a91-8812345)": the machine since it was started, and when the process was. */
export function nameProcess(): string {
  const began = readStart(process.pid)
  const mark = machine === null || began === null ? '' : ` (${machine}-${began})`
  return `process ${process.pid} on ${hostname()}${mark}`
}

/** Whether a process of this machine has ended. False for one elsewhere. */
export function hasEnded(name: string): boolean {
  const [, pid, where, began] = /^process (\d+) on .* \(([0-9a-f]{8})-(\d+)\)$/.exec(name) ?? []
  if (pid === undefined || where !== machine) return false
  return readStart(Number(pid)) !== began && !isHidden(Number(pid))
}

/** Whether it runs, though /proc does not show it: with `hidepid`, or in a systemd unit, one of another user. */
function isHidden(pid: number): boolean {
  if (existsSync(`/proc/${pid}`)) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** This machine since its start, as far as its processes see each other; null where that is not known. */
const machine = readMachine()

function readMachine(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')
    return createHash('sha256')
      .update(boot + readlinkSync('/proc/self/ns/pid'))
      .digest('hex')
      .slice(0, 8)
  } catch {
    return null
  }
}

/** In ticks since the machine was started; null when there is no such process, or only what is left of it. */
function readStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name comes first, in brackets, and may hold anything.
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return 'ZX'.includes(state) ? null : (fields[18] ?? null)
  } catch {
    return null
  }
}
