/** What `doctor` finds, within this process: for whatever a test looks at after a start of the program showed the same way. */

import { runChecks, type Wanted } from '../../src/cli/wiring/run-checks.ts'
import { createReporter, type Finding } from '../../src/doctor/findings.ts'

let last: Promise<unknown> = Promise.resolve()

/** One after the other: meanwhile the settings are this process's environment. */
export function examineHere(env: Record<string, string>, wanted: Partial<Wanted> = {}): Promise<Finding[]> {
  const examined = last.then(async () => {
    const findings: Finding[] = []
    const before = { ...process.env }
    Object.assign(process.env, env)
    const report = createReporter(
      () => {},
      finding => findings.push(finding),
    )
    try {
      await runChecks(report, {}, { sample: 0, repair: false, deep: false, ...wanted })
    } finally {
      for (const name of Object.keys(env)) {
        if (before[name] === undefined) delete process.env[name]
        else process.env[name] = before[name]
      }
    }
    return findings
  })
  last = examined.catch(() => {})
  return examined
}
