/** Faults to plant, one at a time: each is a line of the connector or the store that is changed. The simulator has to find them. */

export interface Planted {
  name: string
  file: string
  from: string
  to: string
  /** Whether it lies in what PostgreSQL runs. */
  isPostgres?: true
}

export const planted: readonly Planted[] = [
  {
    name: 'counters are not lowered',
    file: 'src/store/sql/counters.ts',
    from: 'if (before !== null) countInvoice(change.counters, before, -1)',
    to: '',
  },
  {
    name: 'the version is not raised',
    file: 'src/store/sqlite/write-customers.ts',
    from: 'version = max(version + 1, excluded.version)',
    to: 'version = version',
  },
  {
    name: 'no tombstone is written',
    file: 'src/store/sql/transaction-writes.ts',
    from: 'saveTombstone, [customerId, invoiceId, observedAt, answeredAt]',
    to: "saveTombstone, ['', 'nothing', observedAt, answeredAt]",
  },
  {
    name: 'lines that are unknown by now stay',
    file: 'src/store/sqlite/write-invoices.ts',
    from: 'return !isNew && deleteLines.run(customer_id, id).changes !== 0',
    to: 'return false',
  },
  {
    name: 'a link is not replaced when an invoice is saved',
    file: 'src/store/sql/links.ts',
    from: 'WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id',
    to: 'WHERE stored.claim <> excluded.claim',
  },
  {
    name: 'the lease is not checked',
    file: 'src/sync/lease.ts',
    from: 'lease.check(beats, written)',
    to: 'void lease.check',
  },
  {
    name: 'one miss of a document is enough',
    file: 'src/domain/link/link.ts',
    from: 'return misses >= missesToBelieve ||',
    to: 'return misses >= 1 ||',
  },
  {
    name: 'a round misses a document twice',
    file: 'src/store/sql/write-documents.ts',
    from: 'AND (stored.misses = 0 OR stored.observed_stamp <= $3)',
    to: 'AND $3 = $3',
  },
  {
    name: 'an older answer replaces a newer document',
    file: 'src/store/sql/write-documents.ts',
    from: 'WHERE stored.observed_stamp <= excluded.observed_stamp`,\n}',
    to: '`,\n}',
  },
  {
    name: 'the cursor of the backfill is ahead of its rows',
    file: 'src/sync/invoices/list-ranges.ts',
    from: 'commits.commit(pages, why, async tx =>',
    to: 'commits.commit(pages.slice(1), why, async tx =>',
  },
  {
    name: 'pages after one that failed are stored',
    file: 'src/sync/invoices/list-ranges.ts',
    from: 'this.lastStored = this.lastStored.then(() => {',
    to: 'this.lastStored = this.lastStored.catch(() => {}).then(() => {',
  },
  {
    name: 'the deletion guard is off',
    file: 'src/sync/deletion-guard.ts',
    from: 'return count <= plausibleLosses(await this.atRisk)',
    to: 'return count <= plausibleLosses(await this.atRisk) + 9_999',
  },
  {
    name: 'the events are as fresh as their end',
    file: 'src/sync/invoices/events.ts',
    from: 'succeeded_at: begun.at, failed_at',
    to: 'succeeded_at: Date.now(), failed_at',
  },
  {
    name: 'the cursor of the events leads too far',
    file: 'src/sync/invoices/events.ts',
    from: 'cursor: String(newest)',
    to: 'cursor: String(newest + 900)',
  },
  {
    name: 'an event counts as handled before it is applied',
    file: 'src/sync/invoices/refetch-invoices.ts',
    from: 'for (const { id } of fresh) this.applying.set(id, applied)',
    to: 'for (const { id } of fresh) this.handled.add(id)',
  },
  {
    name: 'a deleted draft is revived by an answer of the same moment',
    file: 'src/sync/invoices/apply-answers.ts',
    from: '...(await tx.findTombstones(ids))]',
    to: ']',
  },
  {
    name: 'answers under way at the same time are not noticed',
    file: 'src/sync/invoices/decide.ts',
    from: 'answer.askedAt < answeredAt',
    to: 'answer.askedAt < answeredAt - 1e15',
  },
  {
    name: 'the stamp is taken after the answer',
    file: 'src/sync/invoices/commit-answers.ts',
    from: 'return { ...answer, askedAt, answeredAt: nextStamp() }',
    to: 'return { ...answer, askedAt: nextStamp(), answeredAt: nextStamp() }',
  },
  {
    name: 'an invoice stays with its former customer',
    file: 'src/sync/invoices/apply-answers.ts',
    from: 'await tx.removeInvoice(customer_id, id)',
    to: 'void [customer_id, id]',
  },
  {
    name: 'a record that does not fit is not set aside',
    file: 'src/sync/invoices/commit-answers.ts',
    from: '  await saveUnfit(tx, options, pages)\n  if',
    to: '  if',
  },
  {
    name: 'a refused invoice is not set aside',
    file: 'src/sync/invoices/outcomes.ts',
    from: "if (decision.action !== 'refuse') return null",
    to: "if (decision.action !== 'hold back') return null",
  },
  {
    name: 'a record that fits again stays set aside',
    file: 'src/sync/set-aside.ts',
    from: 'if (cleared.length > 0) await tx.clearSetAside(cleared)',
    to: '',
  },
  {
    name: 'a document has two owners',
    file: 'src/domain/link/link.ts',
    from: 'return first === undefined || byIssue(first, invoice) === 0',
    to: 'return first === undefined || byIssue(first, invoice) !== 9',
  },
  {
    name: 'a reference outweighs no claim',
    file: 'src/domain/link/link.ts',
    from: 'if (ids.size > 0 && !ids.has(invoice.id))',
    to: 'if (ids.size > 9)',
  },
  {
    name: 'a new document is not linked',
    file: 'src/sync/documents/fetch-documents.ts',
    from: '{ documents: ids, ...invoicesNamedBy(documents, rules) }\n      return { changed',
    to: '{ documents: ids }\n      return { changed',
  },
  {
    name: 'an invoice that another loses a document to is not linked again',
    file: 'src/sync/invoices/apply-answers.ts',
    from: "await relinkInvoices(tx, joinNames(touched), 'claim', options)",
    to: '',
  },
  {
    name: 'the documents are as fresh as the end of their round',
    file: 'src/sync/documents/documents.ts',
    from: 'Math.min(readRoundCursor(stream)?.since ?? at, at)',
    to: 'Math.max(at, Date.now())',
  },
  {
    name: 'the store is fresh before every stream ended once',
    file: 'src/store/sql/shared-rows.ts',
    from: 'count(*) = count(succeeded_at)',
    to: 'count(*) > 0',
  },
  {
    name: 'a document that is set aside is not remembered',
    file: 'src/sync/documents/set-aside-documents.ts',
    from: 'const before = await saveSetAside(tx, system, kindsAbout[about], records)',
    to: 'const before = new Set<string>()',
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
    from: 'if (held.length > 0) await tx.clearSetAside(held)',
    to: '',
  },
  {
    name: 'a change of a document is not in the feed',
    file: 'src/store/sql/counters.ts',
    from: 'change.kinds.set(id, mergeKinds(change.kinds.get(id), kind))',
    to: "if (kind !== 'document') change.kinds.set(id, mergeKinds(change.kinds.get(id), kind))",
  },
  {
    name: 'the feed of all customers skips the first change of a batch',
    file: 'src/store/sql/counters.ts',
    from: 'invoiceId, kind, positionBefore + i + 1]',
    to: 'invoiceId, kind, positionBefore + i + 2]',
  },
  {
    name: 'a field that fits again stays set aside',
    file: 'src/sync/documents/set-aside-documents.ts',
    from: "document: ['document', 'field']",
    to: "document: ['document']",
  },
  {
    name: 'an invoice that could not be fetched counts as one that does not fit',
    file: 'src/sync/invoices/refetch-invoices.ts',
    from: 'if (!(error instanceof UnfitRecord)) throw error',
    to: '',
  },
  {
    name: 'what is held back of an invoice stays with its former customer',
    file: 'src/sync/invoices/apply-answers.ts',
    from: "await guard.forget(tx, 'lost_document', removed)",
    to: '',
  },
  {
    name: 'invoices that were read by a round that failed are not read by the next',
    file: 'src/sync/rounds.ts',
    from: 'this.isFirst = false\n',
    to: '',
  },
  {
    name: 'invoices in no list of unsettled ones are not fetched',
    file: 'src/sync/invoices/list-account.ts',
    from: 'return addApplied(total, await this.fetchUnlisted(since, how.why))',
    to: 'return total',
  },
  {
    name: 'claims do not age',
    file: 'src/sync/link-invoices.ts',
    from: 'for await (const keys of readBatches(store.readCreating)) {',
    to: 'for await (const keys of readBatches(store.readCreating)) {\n    if (keys.length > 0) break',
  },
  {
    name: 'a list that grew shorter while it was read is not read again',
    file: 'src/sync/documents/read-list.ts',
    from: 'return this.ids.size + this.misfits >= this.total && this.total >= totalAtFirst',
    to: 'return true',
  },
  {
    name: 'a round that was cut off counts as a whole one',
    file: 'src/sync/documents/documents.ts',
    from: 'await this.end(stream, round, last === null && lastUnseen === null ? null : String(last ?? 0))',
    to: 'await this.end(stream, round, null)',
  },

  // Ends of ranges and pages within a second.
  {
    name: 'a range of a list begins a second late',
    file: 'src/sync/invoices/ranges.ts',
    from: 'others.map((from, index) => ({ from, before',
    to: 'others.map((from, index) => ({ from: from === null ? null : from + 1, before',
  },
  {
    name: 'a range of a list ends a second early',
    file: 'src/sync/invoices/ranges.ts',
    from: 'before: starts[index] ?? null, after: null, isCut }))',
    to: 'before: starts[index] ? Number(starts[index]) - 1 : null, after: null, isCut }))',
  },
  {
    name: 'a page that ends in the second in which its range begins is the last',
    file: 'src/sync/invoices/list-plan.ts',
    from: 'page.reached < from ?',
    to: 'page.reached <= from ?',
  },

  // Money.
  {
    name: 'what remains of an invoice is taken from its total',
    file: 'src/domain/payment.ts',
    from: "export function toPayCents({ status }: Billed, facts: PaymentFacts): number {\n  return status === 'open' ? Math.max(facts.amount_remaining_cents, 0) : 0",
    to: "export function toPayCents({ status, total_cents }: Billed, facts: PaymentFacts): number {\n  return status === 'open' ? Math.max(total_cents, 0) : 0",
  },
  {
    name: 'a foreign document is compared in the currency of the account',
    file: 'src/operations/reconcile/compare-amounts.ts',
    from: 'return compareWithAny(total, currency, convertedCharges(document, multicurrency.total), allowed)',
    to: "return compareWithAny(total, currency, [grossOf(document) ?? ''], allowed)",
  },
  {
    name: 'payment facts of an older answer stay beside a newer invoice',
    file: 'src/store/sqlite/write-invoices.ts',
    from: '        .slice(2)\n',
    to: "        .slice(2)\n        .filter(name => name !== 'payment')\n",
  },
  {
    name: 'the tax withheld is taken off the tax',
    file: 'src/domain/document-json.ts',
    from: 'tax_cents: cents(document.taxes_total),',
    to: 'tax_cents: (cents(document.total) ?? 0) - (cents(document.before_taxes) ?? 0),',
  },
  {
    name: 'credit notes of one document count for others',
    file: 'src/sync/link-invoices.ts',
    from: 'const { document = null, relations = null } = byId.get(invoice.ix_id ?? -1) ?? {}',
    to: 'const { document = null } = byId.get(invoice.ix_id ?? -1) ?? {}\n    const relations = [...byId.values()].find(each => each.relations?.documents.length)?.relations ?? null',
  },

  // Names of invoices.
  {
    name: 'a name of several invoices ties one of them',
    file: 'src/domain/link/link.ts',
    from: 'return ids.size === 1 && ids.has(id) &&',
    to: 'return ids.has(id) &&',
  },
  {
    name: 'a number ties without the same client',
    file: 'src/domain/link/link.ts',
    from: ': invoice.number === value && isSameClient(invoice, clientTaxId)',
    to: ': invoice.number === value',
  },
  {
    name: 'a payment ties that is not the invoice’s',
    file: 'src/domain/link/link.ts',
    from: '? payments.includes(value)',
    to: '? payments.some(payment => payment.length === value.length)',
  },
  {
    name: 'a payment that comes later ties nothing',
    file: 'src/domain/link/related.ts',
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
    file: 'src/sync/invoices/apply-answers.ts',
    from: 'await findLost(tx, lost, options)]',
    to: '{}]',
  },
  {
    name: 'a client’s tax ID links nothing',
    file: 'src/sync/documents/fetch-clients.ts',
    from: 'await tx.saveClient(id, taxId, beingLinked)\n  return true',
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
    file: 'src/domain/link/reference.ts',
    from: '[...inReference, ...inUid]',
    to: 'inReference',
  },
  {
    name: 'the entries of an account stay as they were first',
    file: 'src/store/sqlite/write-invoices.ts',
    from: 'if (!isNew) deleteEntries.run(row.customer_id, row.id)',
    to: 'if (!isNew) return',
  },
  {
    name: 'what an invoice leaves in favour is in no statement',
    file: 'src/domain/account.ts',
    from: 'toPayCents(invoice, facts) - inFavourCents(invoice, facts, document)',
    to: 'toPayCents(invoice, facts)',
  },
  {
    name: 'a statement opens with the entries of its first day',
    file: 'src/store/sqlite/read-accounts.ts',
    from: 'customer_id = ?1 AND day < ?2 GROUP',
    to: 'customer_id = ?1 AND day <= ?2 GROUP',
  },
  {
    name: 'on PostgreSQL, the total of a customer is that of the last batch',
    file: 'src/store/postgres/functions.sql',
    from: 'total = stored.total + excluded.total',
    to: 'total = excluded.total',
    isPostgres: true,
  },
  {
    name: 'on PostgreSQL, a sum is its largest amount',
    file: 'src/store/postgres/functions.sql',
    from: 'i.status, i.currency, count(*) AS n, sum(i.total_cents) AS cents',
    to: 'i.status, i.currency, count(*) AS n, max(i.total_cents) AS cents',
    isPostgres: true,
  },
]
