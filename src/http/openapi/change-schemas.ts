/** Input and output of the feed of changes. */
import type { Static } from 'typebox'
import { guardedResponses, jsonContent, tokenHeaders } from './responses.ts'
import { customerParams, secured, whole } from './schemas.ts'
import { Type } from './type.ts'

/** Bounds of a page of changes, and of a wait for the next. */
export const changeLimits = { usual: 100, most: 1_000, waitSeconds: 25 } as const

const changesQuery = Type.Object({
  after: whole(
    'Cursor: `next` of the last answer. 0 is the beginning; without it, `next` is the end of the feed.',
    1772443872000,
  ),
  wait: whole(`Seconds to wait for a change when there is none, at most ${changeLimits.waitSeconds}.`, 25, 0),
  limit: whole(
    `Changes to return at most. Above ${changeLimits.most} is ${changeLimits.most}; below 1 is 1.`,
    100,
    changeLimits.usual,
  ),
})
export type ChangesQuery = Static<typeof changesQuery>

const response = guardedResponses(
  {
    description: 'Changes after the cursor; none when nothing changed in time.',
    headers: tokenHeaders,
    content: jsonContent('ChangeList'),
  },
  'cursor_expired',
)

const feed = { ...secured, querystring: changesQuery, response }

export const listChangesSchema = {
  ...feed,
  operationId: 'listChanges',
  summary: "List a customer's changes",
  description:
    "Invoices of a customer that changed, in the order of the commits. A cursor is the customer's version, and belongs to this feed alone.",
  params: customerParams,
}

export const listAllChangesSchema = {
  ...feed,
  operationId: 'listAllChanges',
  summary: 'List changes of all customers',
  description:
    'Invoices that changed, in the order of the commits, for a token of all customers. A cursor belongs to this feed alone.',
}
