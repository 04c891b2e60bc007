/** What a process and its descendants have used, as Linux tells it. */
import { readdirSync, readFileSync } from 'node:fs'

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

/** The most that was ever resident, mapped files included. */
export function readPeakMemoryMb(pid: number): number {
  const peaksKb = listTree(pid).map(one => Number(/^VmHWM:\s+(\d+)/m.exec(readProc(one, 'status'))?.[1] ?? 0))
  return peaksKb.reduce((sum, peak) => sum + peak, 0) / 1024
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
