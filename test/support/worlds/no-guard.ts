/** A deletion guard that lets everything through, for tests of something else. */
import type { DeletionGuard } from '../../../src/sync/deletion-guard.ts'

export const noGuard: DeletionGuard = {
  allows: async () => true,
  forget: async () => {},
  letThrough: () => [],
  isLetThrough: () => false,
}
