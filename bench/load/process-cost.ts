/** What a process and its descendants have used, as Linux tells it. */
import { readdirSync, readFileSync } from 'node:fs'

export interface Memory {
  /** The most that was ever resident, mapped files included. */
  peak: number
  /** What is the process's own at the moment; the rest are pages of files, which the system may take back. */
  own: number
}

function listTree(pid: number): number[] {
  const children = listTasks(pid).flatMap(task =>
    readProc(pid, `task/${task}/children`).split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(listTree)]
}

function listTasks(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    // It ended meanwhile.
    return []
  }
}

/** What each process of a tree has used so far, in nanoseconds. */
export type CpuUse = ReadonlyMap<number, number>

/** From what the scheduler counts: the clock's ticks are too coarse for a second. */
export function readCpu(pid: number): CpuUse {
  return new Map(
    listTree(pid).map(one => {
      const threads = listTasks(one).map(task => readProc(one, `task/${task}/schedstat`).split(' ')[0])
      return [one, threads.reduce((sum, used) => sum + Number(used), 0)]
    }),
  )
}

/**
 * What was used since, user and system, in microseconds. Process by process, because PostgreSQL's end: others' idle
 * connections close meanwhile, and what those had used before must not be subtracted.
 */
export function cpuSince(before: CpuUse, pid: number): number {
  let nanoseconds = 0
  for (const [one, used] of readCpu(pid)) nanoseconds += used - (before.get(one) ?? 0)
  return nanoseconds / 1000
}

/** In MB. */
export function readMemory(pid: number): Memory {
  const memory = { peak: 0, own: 0 }
  for (const one of listTree(pid)) {
    const status = readProc(one, 'status')
    const read = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024
    memory.peak += read('VmHWM')
    memory.own += read('RssAnon')
  }
  return memory
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
