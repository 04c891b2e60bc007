/**
 * Sheds what cannot be served in time. The event loop takes the requests that arrived in turns, one after the other: a turn
 * that lasts long means that requests wait long. When turns stay long, each serves for a while, and refuses the others that
 * are waiting, at once and at the least cost. See docs/decisions/0010-shedding-by-turns.md.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ApiError, errorCodes } from '../errors.ts'
import { writeError } from './errors.ts'

/** How long a turn serves requests before it sheds the rest. */
const maxTurnMs = 50

/** And how many it serves in any case: as few as this at once are no overload, however slow the machine is. */
const minServed = 200

/** For how long turns must have been longer than that: one may be long because of a pause of the machine. */
const patienceMs = 1_000

const retryAfterSeconds = '1'
const refusal = new ApiError('overloaded', 'More requests come than can be served; try again shortly.')

/** Of this many requests, one has its turn measured, until a turn is long: then every turn is. */
const measuredEvery = 16

/** Call before any other hook is added: what is shed should have cost nothing yet. */
export function shedOverload(app: FastifyInstance): void {
  let requests = 0
  /** -1 while no turn is measured. */
  let turnBegan = -1
  let served = 0
  /** Since when every turn was long. */
  let longSince = Number.POSITIVE_INFINITY

  function endTurn(): void {
    if (performance.now() - turnBegan < maxTurnMs) longSince = Number.POSITIVE_INFINITY
    else if (longSince === Number.POSITIVE_INFINITY) longSince = turnBegan
    turnBegan = -1
  }

  function isExcess(): boolean {
    if (++served <= minServed) return false
    const now = performance.now()
    return now - turnBegan > maxTurnMs && now - Math.min(longSince, turnBegan) > patienceMs
  }

  app.addHook('onRequest', (request, reply, done) => {
    if (turnBegan === -1) {
      if (++requests % measuredEvery === 0 || longSince !== Number.POSITIVE_INFINITY) {
        turnBegan = performance.now()
        served = 1
        setImmediate(endTurn)
      }
    } else if (isExcess() && request.url !== '/live') {
      shed(reply, request.id)
      return
    }
    done()
  })
}

/** Past Fastify's ways of sending, which cost as much again. */
function shed(reply: FastifyReply, requestId: string): void {
  const body = writeError(refusal, requestId)
  reply.hijack()
  reply.raw
    .writeHead(errorCodes[refusal.code].status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'retry-after': retryAfterSeconds,
      'request-id': requestId,
    })
    .end(body)
}
