/** The table of docs/logs.md: every message that the code logs, with its meaning. */
import { findLogCalls } from './log-calls.ts'
import { writeTable } from './write-table.ts'

/** Shown in the place of a message that a variable holds in the code. */
const heldByVariables: Record<string, string> = {
  'known.code': 'an error code',
  message: 'the … key may not read …',
  error: 'Stripe refused the key to read …',
}

/** Shown in the place of fields that the code makes elsewhere. */
const fieldsElsewhere: Record<string, string> = {
  request: '[fields](#fields-of-a-request)',
  synchronized: '[fields](#fields-of-a-step)',
}

/** Meaning, and next step where there is one. */
const meanings: Record<string, string> = {
  'a document without an ID was left out':
    'InvoiceXpress sent a document that Fatura cannot name. Report it to InvoiceXpress.',
  'a record could not be read and was set aside':
    'A document, a client or a list of related documents has a form that Fatura does not know. Fatura asks for it again. `fatura status` counts it until it fits.',
  'a request of MCP was refused':
    'The client sent a message that is not MCP, or of a version that is not served.',
  'an address sent too many wrong ADMIN_TOKENs':
    'The address sent more than 20 wrong tokens within a minute. Find out who it is; keep the [admin port](admin.md#the-admin-port) private.',
  'an error code':
    'A request failed because of Stripe, InvoiceXpress or the rights of the database role. The message is the [error code](errors.md#codes) that the client got. `err` has the cause.',
  'an invoice could not be read and was set aside':
    'Stripe sent an invoice of a form that Fatura does not know. `fatura status` counts it until it fits.',
  'an invoice had changed without an event':
    'A list found a change that no event had announced, and [corrected it](admin.md#corrections). Check the webhook endpoint at Stripe.',
  'another process took over the synchronization of this store':
    'This process was frozen or cut off for over 15 s. It waits for its turn again.',
  'download stopped before its end':
    'A PDF or QR code did not arrive whole. The client sees a broken connection, and may try again.',
  'events reach back … days only, so all invoices are listed again':
    'The newest event that was read and the last list of everything are both over 28 days old. Events may be lost. Nothing is to be done.',
  'invoices were refused':
    'Answers about invoices that are [not stored](sync.md#refused-invoices), by reason.',
  'line items unavailable':
    'A detail was sent without lines, because Stripe failed, was late or could not be asked. The client may ask again.',
  'CUSTOMER_LINK_KEY is unknown or revoked, so nobody can sign in by e-mail':
    'Set `CUSTOMER_LINK_KEY` to a key of `fatura key list` that is active, and restart.',
  'links could not be sent by e-mail':
    'The mail server or the store failed. Check `SMTP_URL`, and the address in `SMTP_FROM`.',
  'links were sent by e-mail': 'A customer asked to [sign in](access.md#sign-in-by-e-mail).',
  listening: 'The API is served at this address.',
  'listening for administration': 'The admin port is served at this address.',
  "the list of a customer's invoices failed and is tried again":
    'A customer changed at Stripe, and the list of their invoices failed. The events are read again.',
  'net.ipv4.tcp_migrate_req is 0: a process that ends may reset connections that it has not accepted':
    'Set it to 1 where [several processes](run.md#several-processes) share a port.',
  'part of the database is out of reach, so these invoices are fetched again later':
    'A [node of Citus](postgresql.md#a-node-that-is-down) is down. Bring it back.',
  'receiving webhooks': "Stripe's webhooks are received at this address.",
  request: 'A request was answered.',
  'searches do not run with lower priority than pages, because setpriority is forbidden':
    'Large searches may slow down other requests. Allow the system call `setpriority` to the service.',
  'several documents name one invoice':
    'More than one document names this invoice, and Fatura shows the `chosen` one. `fatura reconcile` lists them.',
  stopped: 'The process ends.',
  stopping:
    'The process serves for `delay_ms` more, while `/ready` answers 503. See [stopping](run.md#stopping).',
  'Stripe refused the key to read …':
    'Give the key [the permission](install.md#connect-stripe-and-invoicexpress) that the message names.',
  'STRIPE_API_KEY is not set, so stored invoices are served and nothing is synchronized':
    'Set `STRIPE_API_KEY` if `fatura up` shall synchronize.',
  'sync failed; trying again':
    'Stripe, InvoiceXpress or the store failed. `fatura status` shows [a stream that fails](sync.md#status).',
  synchronized: 'A step of the synchronization ended.',
  'the deletion guard holds back changes that look wrong. …':
    'Too many invoices or documents are gone at once. Judge them: see [the deletion guard](sync.md#the-deletion-guard).',
  'the outgoing webhook …':
    'A webhook to your program failed. The message says how, and `fatura webhook list` shows it. Changes wait, and are sent again. When `state` is `disabled`, they wait for `fatura webhook replay`.',
  'outgoing webhooks could not be read from the store and are tried again':
    'The store could not be read. Webhooks wait until it is back.',
  'the last listed invoice is gone, so the list starts again':
    'A draft was deleted at Stripe while the list was paused. Nothing is to be done.',
  'the … key may not read …':
    'The user of the InvoiceXpress key lacks a permission. The message names what is missing because of it.',
  'the keys of the identity provider could not be read':
    'Check `AUTH_JWKS_URL`. [Known keys](access.md#jwts-of-an-identity-provider) stay valid, and Fatura asks again.',
  'the store can be read again':
    'An outage of the store is over. `failed` requests got 503 within `seconds`.',
  'the store cannot be read: requests get 503':
    'An outage of the store begins. See [what to do](alerts.md#faturastoreisdown).',
  'the store could not be read for the metrics':
    'The figures of the store are missing from this answer of `/metrics`. See [what to do](alerts.md#faturastoreisdown).',
  'the store still cannot be read':
    'An outage of the store goes on. `failed`: requests that got 503 since the last such message. Sent once a minute at most.',
  'unexpected error': 'A fault of Fatura. The client got 500 `internal`. Report `err` and `request_id`.',
  'waiting: another process synchronizes this store':
    'One process [synchronizes a store](sync.md#one-connector-a-store), and this one stands by. Sent every minute.',
  'waiting: another process writes to this store':
    'An import or another writer holds the lock of the SQLite file. Fatura gives up after 30 s.',
  'waiting: the store is out of reach, or another process writes to it':
    'The connector cannot begin, because it cannot write to the store. It tries again twice a second.',
  webhook: 'A webhook of Stripe was stored. `applied` is false when the event concerns no invoice.',
  'webhook failed': 'A webhook could not be stored. Stripe got 503, and sends it again. `err` has the cause.',
  'webhook refused, because it has no signature':
    'A stranger, or a proxy that drops the header `Stripe-Signature`.',
  'webhook refused, because its signature does not fit STRIPE_WEBHOOK_SECRET':
    'Another secret, a changed body, a clock that is off by over 5 minutes, or a stranger. See [the secret](rotation.md#the-secret-of-stripes-webhooks).',
  'webhook takes too long: it got 503 and is still being applied':
    'The change took over 2 s to store. Stripe got 503, and sends the webhook again.',
  'outgoing webhooks could not be sent and are tried again':
    'The store failed while changes were sent to this outgoing webhook. `err` has the cause. Fatura tries again, and may send a change twice.',
}

/** One row a message, in the order of their letters. */
export function writeLogTable(): string {
  const calls = Map.groupBy(findLogCalls(), ({ message }) => heldByVariables[message] ?? message)
  const missing = [...calls.keys()].filter(message => meanings[message] === undefined)
  const old = Object.keys(meanings).filter(message => !calls.has(message))
  if (missing.length > 0)
    throw new Error(`scripts/log-messages.ts gives no meaning to: ${missing.join(' | ')}`)
  if (old.length > 0)
    throw new Error(`scripts/log-messages.ts has messages that are not logged: ${old.join(' | ')}`)
  const rows = [...calls].map(([message, found]) => {
    const names = [...new Set(found.flatMap(({ fields }) => fields))].map(name => `\`${name}\``)
    const fields = fieldsElsewhere[message] ?? names.join(', ')
    const levels = [...new Set(found.map(({ level }) => level))].join(', ')
    const name = Object.values(heldByVariables).includes(message) ? `(${message})` : `\`${message}\``
    return [name, levels, fields, meanings[message] ?? '']
  })
  rows.sort(([a = ''], [b = '']) => letters(a).localeCompare(letters(b), 'en'))
  return writeTable(['Message', 'Level', 'Fields', 'Meaning and next step'], rows)
}

const letters = (row: string) => row.replace(/[^a-z ]/gi, '').toLowerCase()
