/** Worlds made at random: in none of them is an invariant broken. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { campaign } from '../support/campaign.ts'
import { formatOutcome, openStage } from './world.ts'

const seeds = campaign(2_000, 100_000)

test(`${seeds} worlds of faults, kills, clocks and odd records break no invariant`, async () => {
  const stage = await openStage(campaign(true, false))
  for (let seed = 1; seed <= seeds; seed++) {
    const outcome = await stage.run(seed)
    assert.ok(outcome.violation === null, formatOutcome(outcome))
  }
  await stage.close()
})
