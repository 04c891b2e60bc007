/** Faults to plant, one at a time: each is a line of the connector or the store that is changed. The simulator has to find them. */

export interface Planted {
  name: string
  file: string
  from: string
  to: string
}

export const planted: readonly Planted[] = [
  {
    name: 'counters are not lowered',
    file: 'src/store/read-model/counting.ts',
    from: 'if (before !== null) countInvoice(change.counters, before, -1)',
    to: '',
  },
  {
    name: 'the version is not raised',
    file: 'src/store/sqlite/counts.ts',
    from: 'version = max(version + 1, excluded.version)',
    to: 'version = version',
  },
  {
    name: 'the first page is not kept',
    file: 'src/store/sqlite/counts.ts',
    from: 'total = total + excluded.total, head = excluded.head',
    to: 'total = total + excluded.total',
  },
  {
    name: 'no tombstone is written',
    file: 'src/store/shared/transaction-writes.ts',
    from: 'WHERE stored.observed_at < excluded.observed_at`,\n        [customerId, invoiceId, observedAt],',
    to: "WHERE stored.observed_at < excluded.observed_at`,\n        ['', invoiceId, observedAt],",
  },
  {
    name: 'lines that are unknown by now stay',
    file: 'src/store/sqlite/write-invoices.ts',
    from: ': deleteLines.run(customer_id, id).changes',
    to: ': 0',
  },
  {
    name: 'a link is not replaced when an invoice is saved',
    file: 'src/store/shared/links.ts',
    from: 'WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id',
    to: 'WHERE stored.claim <> excluded.claim',
  },
  {
    name: 'the lease is not checked',
    file: 'src/sync/lease.ts',
    from: 'if (await tx.holdsLease(lease.epoch)) return result',
    to: 'return result',
  },
  {
    name: 'one miss of a document is enough',
    file: 'src/linking/link.ts',
    from: 'return misses >= missesToBelieve ||',
    to: 'return misses >= 1 ||',
  },
  {
    name: 'a round misses a document twice',
    file: 'src/store/shared/write-documents.ts',
    from: 'AND (stored.misses = 0 OR stored.observed_at <= $3)',
    to: 'AND $3 = $3',
  },
  {
    name: 'an older answer replaces a newer document',
    file: 'src/store/shared/write-documents.ts',
    from: 'WHERE stored.observed_at <= excluded.observed_at`,\n}',
    to: '`,\n}',
  },
  {
    name: 'the cursor of the backfill is ahead of its rows',
    file: 'src/sync/list-ranges.ts',
    from: 'calls.commit(pages, why, async tx =>',
    to: 'calls.commit(pages.slice(1), why, async tx =>',
  },
  {
    name: 'pages after one that failed are stored',
    file: 'src/sync/list-ranges.ts',
    from: 'lastStored = lastStored.then(() => {',
    to: 'lastStored = lastStored.catch(() => {}).then(() => {',
  },
  {
    name: 'the deletion guard is off',
    file: 'src/sync/deletion-guard.ts',
    from: 'if (place <= limit) return true',
    to: 'if (place > 0) return true',
  },
  {
    name: 'the events are as fresh as their end',
    file: 'src/sync/events.ts',
    from: 'succeeded_at: askedAt, failed_at',
    to: 'succeeded_at: Date.now(), failed_at',
  },
  {
    name: 'the cursor of the events leads too far',
    file: 'src/sync/events.ts',
    from: 'cursor: String(newest)',
    to: 'cursor: String(newest + 900)',
  },
  {
    name: 'an event counts as handled before it is applied',
    file: 'src/sync/refetch-invoices.ts',
    from: 'for (const { id } of fresh) applying.set(id, applied)',
    to: 'for (const { id } of fresh) handled.add(id)',
  },
  {
    name: 'a deleted draft is revived by an answer of the same moment',
    file: 'src/sync/apply.ts',
    from: 'else if (isTie && previous === null && (before !== undefined || (elsewhere.length === 0 && isGone(id))))',
    to: 'else if (isTie && before === undefined && previous !== null)',
  },
  {
    name: 'answers under way at the same time are not noticed',
    file: 'src/sync/stamped-calls.ts',
    from: '(answered.get(id)?.at ?? 0) > (stampOfId.get(id) ?? 0)',
    to: 'id === ""',
  },
  {
    name: 'the stamp is taken after the answer',
    file: 'src/sync/stamped-calls.ts',
    from: 'return { ...(await request()), askedAt }',
    to: 'return { ...(await request()), askedAt: nextStamp() }',
  },
  {
    name: 'an invoice stays with its former customer',
    file: 'src/sync/apply.ts',
    from: 'await tx.removeInvoice(other.customer_id, other.id)',
    to: '',
  },
  {
    name: 'a record that does not fit is not set aside',
    file: 'src/sync/stamped-calls.ts',
    from: "await replaceAside(writing, id, askedAt, { kind: 'invoice', reason })",
    to: 'void reason',
  },
  {
    name: 'a refused invoice is not set aside',
    file: 'src/sync/apply.ts',
    from: 'onRefused?.(id, reason, stored.has(id))',
    to: 'void onRefused',
  },
  {
    name: 'a record that fits again stays set aside',
    file: 'src/sync/stamped-calls.ts',
    from: 'await tx.clearSetAside([{ system, kind: before.kind, id }])',
    to: '',
  },
  {
    name: 'a document has two owners',
    file: 'src/linking/link.ts',
    from: 'return first === undefined || byIssue(first, invoice) === 0',
    to: 'return first === undefined || byIssue(first, invoice) !== 9',
  },
  {
    name: 'a reference outweighs no claim',
    file: 'src/linking/link.ts',
    from: 'if (ids.size > 0 && !ids.has(invoice.id))',
    to: 'if (ids.size > 9)',
  },
  {
    name: 'a new document is not linked',
    file: 'src/sync/refetch-documents.ts',
    from: '{ documents: ids, ...invoicesNamedBy(documents, rules) }\n        const changed',
    to: '{ documents: ids }\n        const changed',
  },
  {
    name: 'an invoice that another loses a document to is not linked again',
    file: 'src/sync/apply.ts',
    from: "await relinkInvoices(tx, joinNames(contested), 'claim', linking)",
    to: '',
  },
  {
    name: 'the documents are as fresh as the end of their round',
    file: 'src/sync/documents.ts',
    from: 'const since = readCursor(stream)?.since ?? at',
    to: 'const since = readCursor(stream)?.since ?? Math.max(at, Date.now())',
  },
  {
    name: 'the store is fresh before every stream ended once',
    file: 'src/store/sqlite/migrations/0001.sql',
    from: 'count(*) = count(succeeded_at)',
    to: 'count(*) > 0',
  },
  {
    name: 'a document that is set aside is not remembered',
    file: 'src/sync/set-aside-documents.ts',
    from: 'await store.transaction(tx => tx.setAside({ ...key, reason }, Date.now()))',
    to: 'void reason',
  },
  {
    name: 'documents that are gone at once are not held back',
    file: 'src/sync/link-invoices.ts',
    from: "if (invoice.ix_sync_state !== 'synced' || fields.ix_sync_state === 'synced') return false",
    to: "if (invoice.ix_sync_state === 'synced' || fields.ix_sync_state !== 'synced') return false",
  },
  {
    name: 'a loss that was let through stays held back',
    file: 'src/sync/deletion-guard.ts',
    from: 'await tx.clearSetAside(names.map(id => ({ system: guardSystem, kind: loss, id })))',
    to: '',
  },
  {
    name: 'a change of a document is not in the feed',
    file: 'src/store/read-model/counting.ts',
    from: 'change.kinds.set(id, mergeKinds(change.kinds.get(id), kind))',
    to: "if (kind !== 'document') change.kinds.set(id, mergeKinds(change.kinds.get(id), kind))",
  },
  {
    name: 'the feed of all customers skips the first change of a batch',
    file: 'src/store/read-model/counting.ts',
    from: 'invoiceId, kind, placeBefore + i + 1]',
    to: 'invoiceId, kind, placeBefore + i + 2]',
  },
  {
    name: 'a field that fits again stays set aside',
    file: 'src/sync/refetch-documents.ts',
    from: "await setAside.clear(tx, 'field', whole)",
    to: '',
  },
  {
    name: 'an invoice that could not be fetched counts as one that does not fit',
    file: 'src/sync/refetch-invoices.ts',
    from: 'if (!(error instanceof UnfitRecord)) throw error',
    to: '',
  },
  {
    name: 'what is held back of an invoice stays with its former customer',
    file: 'src/sync/apply.ts',
    from: "await guard.forget(tx, 'downgrade', left)",
    to: '',
  },
  {
    name: 'invoices that were read by a round that failed are not read by the next',
    file: 'src/sync/rounds.ts',
    from: 'unlessSince = undefined\n',
    to: '',
  },
  {
    name: 'invoices in no list of unsettled ones are not fetched',
    file: 'src/sync/list-account.ts',
    from: '          total = addApplied(total, await fetchUnlisted(since))',
    to: '          void since',
  },
  {
    name: 'claims do not age',
    file: 'src/sync/link-invoices.ts',
    from: 'for await (const keys of readBatches(store.readCreating)) {',
    to: 'for await (const keys of readBatches(store.readCreating)) {\n    if (keys.length > 0) break',
  },
  {
    name: 'a list that grew shorter while it was read is not read again',
    file: 'src/sync/read-list.ts',
    from: 'isWhole: ids.size + misfits >= total && total >= atFirst',
    to: 'isWhole: true',
  },
  {
    name: 'a round that was cut off counts as a whole one',
    file: 'src/sync/documents.ts',
    from: 'await end(stream, round, last === null && left === null ? null : String(last ?? 0))',
    to: 'await end(stream, round, null)',
  },

  // Money.
  {
    name: 'what remains of an invoice is taken from its total',
    file: 'src/payment.ts',
    from: "export function toPayCents({ status }: Billed, facts: PaymentFacts): number {\n  return status === 'open' ? Math.max(facts.amount_remaining_cents, 0) : 0",
    to: "export function toPayCents({ status, total_cents }: Billed, facts: PaymentFacts): number {\n  return status === 'open' ? Math.max(total_cents, 0) : 0",
  },
  {
    name: 'a foreign document is compared in the currency of the account',
    file: 'src/checks/compare-amounts.ts',
    from: 'return compareWithAny(total, currency, convertedCharges(document, multicurrency.total), allowed)',
    to: "return compareWithAny(total, currency, [grossOf(document) ?? ''], allowed)",
  },
  {
    name: 'payment facts of an older answer stay beside a newer invoice',
    file: 'src/store/sqlite/write-invoices.ts',
    from: '      .slice(2)\n',
    to: "      .slice(2)\n      .filter(name => name !== 'payment')\n",
  },
  {
    name: 'the tax withheld is taken off the tax',
    file: 'src/document-json.ts',
    from: 'tax_cents: cents(document.taxes_total),',
    to: 'tax_cents: (cents(document.total) ?? 0) - (cents(document.before_taxes) ?? 0),',
  },
  {
    name: 'credit notes of one document count for others',
    file: 'src/sync/link-invoices.ts',
    from: 'const { document = null, relations = null } = byId.get(invoice.ix_id ?? -1) ?? {}',
    to: 'const { document = null } = byId.get(invoice.ix_id ?? -1) ?? {}\n    const relations = documents.find(each => each.relations?.documents.length)?.relations ?? null',
  },

  // Names of invoices.
  {
    name: 'a name of several invoices ties one of them',
    file: 'src/linking/link.ts',
    from: 'return ids.size === 1 && ids.has(id) &&',
    to: 'return ids.has(id) &&',
  },
  {
    name: 'a number ties without the same client',
    file: 'src/linking/link.ts',
    from: ': invoice.number === value && isSameClient(invoice, clientTaxId)',
    to: ': invoice.number === value',
  },
  {
    name: 'a payment ties that is not the invoice’s',
    file: 'src/linking/link.ts',
    from: '? payments.includes(value)',
    to: '? payments.some(payment => payment.length === value.length)',
  },
  {
    name: 'a payment that comes later ties nothing',
    file: 'src/linking/related.ts',
    from: 'return facts?.payments.map(({ id }) => id) ?? []',
    to: 'return facts?.payments.slice(0, 1).map(({ id }) => id) ?? []',
  },
  {
    name: 'an invoice whose payment another gets keeps its document',
    file: 'src/sync/link-invoices.ts',
    from: 'const isOther = new Set(others)',
    to: 'const isOther = new Set(others.slice(99))',
  },
  {
    name: 'a payment or number that an invoice loses is given to no other',
    file: 'src/sync/apply.ts',
    from: 'isPartial ? {} : await findLost(tx, lost, linking)',
    to: '{}',
  },
  {
    name: 'a client’s tax ID links nothing',
    file: 'src/sync/refetch-documents.ts',
    from: 'await tx.saveClient(id, taxId, beingLinked)\n    return true',
    to: 'return false',
  },
  {
    name: 'clients of documents that name a number are not read',
    file: 'src/sync/link-invoices.ts',
    from: 'if (clients.length > 0) await tx.askForClients',
    to: 'if (clients.length > 99) await tx.askForClients',
  },
  {
    name: 'a proprietary_uid names no payment',
    file: 'src/linking/reference.ts',
    from: '[...inReference, ...inUid]',
    to: 'inReference',
  },
]
