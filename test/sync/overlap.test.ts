/** Two requests that return one invoice and are under way at once: the store is to end with its later state. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Engine, engines } from '../support/databases/engines.ts'
import { notify, readAll, startRig } from '../support/worlds/sync.ts'

/** An invoice is fetched: its request, or its answer, is held on the way. Meanwhile its customer's invoices can be listed. */
async function startOverlap(t: TestContext, engine: Engine, held: 'request' | 'answer') {
  const { account, source, store, connect } = await startRig(t, engine, { seed: 7, invoices: 0 })
  const id = account.change('create')
  const customer_id = String(account.invoices.get(id)?.customer)
  const [isHeld, isReleased] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  t.after(() => isReleased.resolve())
  async function hold() {
    isHeld.resolve()
    await isReleased.promise
  }
  const connector = await connect({
    source: {
      ...source,
      async fetchInvoice(...asked) {
        if (held === 'request') await hold()
        const answer = await source.fetchInvoice(...asked)
        if (held === 'answer') await hold()
        return answer
      },
    },
  })
  const fetched = notify(connector, { customer_id, id })
  await isHeld.promise
  return {
    list: () => notify(connector, { customer_id }),
    finalize: () => account.change('finalize', id),
    async endFetch() {
      isReleased.resolve()
      await fetched
    },
    statuses: async () => (await readAll(store)).map(({ summary }) => JSON.parse(summary).status),
  }
}

for (const engine of engines)
  describe(`two overlapping requests about one invoice on ${engine.name}`, () => {
    it('leave the later state stored when the first request is answered last with the earlier state', async t => {
      const { list, finalize, endFetch, statuses } = await startOverlap(t, engine, 'answer')
      finalize()
      await list()
      await endFetch()
      assert.deepEqual(await statuses(), ['open'])
    })

    it('leave the later state stored when the first request is answered last with the later state', async t => {
      const { list, finalize, endFetch, statuses } = await startOverlap(t, engine, 'request')
      await list()
      finalize()
      await endFetch()
      assert.deepEqual(await statuses(), ['open'])
    })
  })
