/** Writes to a store until it is killed, or its test has ended: run with the store's address, and after how many turns to say so. */
import { invoiceStatuses } from '../../../src/domain/invoice.ts'
import { openWriteStore } from '../../../src/store/engines.ts'
import { makeRecord, withDocument } from '../worlds/records.ts'

const [, , url = '', told] = process.argv
const store = await openWriteStore(url)
const parent = process.ppid
for (let turn = 0; process.ppid === parent; turn++) {
  const records = Array.from({ length: 40 }, (_, i) =>
    makeRecord({
      ...(i % 2 === 0 && withDocument),
      id: `in_${(turn * 7 + i * 31) % 900}`,
      status: invoiceStatuses[(turn + i) % 5] ?? 'paid',
      issued_at: new Date(Date.UTC(2026, 0, 1) + ((turn * 13 + i) % 90) * 86_400_000).toISOString(),
    }),
  )
  await store.transaction(async tx => {
    await tx.saveInvoices(records)
    await tx.deleteInvoice('cus_ana', `in_${turn % 900}`)
  })
  if (turn === Number(told)) process.stdout.write('writing\n')
}
