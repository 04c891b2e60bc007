/** How soon fatura serve follows when the file of its SQLite store is replaced. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { reportFigure } from '../support/checks/campaign.ts'
import { createCli, eventually } from '../support/clients/cli.ts'
import { backUp, restore } from '../support/databases/replace-file.ts'
import { makeInvoice } from '../support/worlds/records.ts'

const replacements = 41

it('a replaced SQLite file is served within 5 s, and its old content is not served again', async t => {
  const cli = await createCli(t)
  const { database } = cli
  await cli.load(makeInvoice({ id: 'in_1' }))
  const token = await cli.createToken()
  const backup = backUp(database)
  await cli.load(makeInvoice({ id: 'in_2' }))
  const newer = backUp(database, 'newer')
  const api = await cli.serve(['--rate-limit', 'off'])
  const askList = () => api.get('/api/v1/client/cus_ana/invoices', token)

  let slowestMs = 0
  for (let turn = 0; turn < replacements; turn++) {
    const [file, total] = turn % 2 === 0 ? [backup, 1] : [newer, 2]
    await restore(database, file)
    const replaced = performance.now()
    await eventually('the other content is served', async () => {
      const { status, json } = await askList()
      return status === 200 && json.total === total
    })
    slowestMs = Math.max(slowestMs, performance.now() - replaced)
    // It looks four times a second.
    await sleep(300)
    assert.equal((await askList()).json.total, total, 'the former content is back')
  }
  reportFigure(t, 'R15', `${replacements} files replaced: served after ${slowestMs.toFixed(0)} ms at most`)
  assert.ok(slowestMs < 5_000)
  assert.equal((await api.stop()).code, 0)
})
