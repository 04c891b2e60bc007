/** What `doctor` finds, within this process: for whatever a test looks at after a start of the program showed the same way. */

import { readChecked } from '../../../src/cli/commands/doctor.ts'
import { createReport, type Finding } from '../../../src/operations/doctor/findings.ts'
import { runChecks, type Wanted } from '../../../src/operations/doctor/run-checks.ts'

let last: Promise<unknown> = Promise.resolve()

/** One after the other: meanwhile the settings are this process's environment. */
export function examineHere(env: Record<string, string>, wanted: Partial<Wanted> = {}): Promise<Finding[]> {
  const examined = last.then(async () => {
    const findings: Finding[] = []
    const before = { ...process.env }
    Object.assign(process.env, env)
    const report = createReport(
      () => {},
      finding => findings.push(finding),
    )
    try {
      await runChecks(report, readChecked(report, {}), {
        ...{ sample: 0, repair: false, deep: false, onCounted() {}, onWait() {} },
        ...wanted,
      })
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
