import type { FastifyInstance } from 'fastify'
import { type AccountQuery, composeStatement, entriesOfPage, type StatementQuery } from '../domain/account.ts'
import { serializeStatement } from '../domain/invoice-json.ts'
import { clampPage } from '../domain/list-query.ts'
import type { AccountPage, ReadStore } from '../store/store.ts'
import { sendOfCustomer } from './conditional.ts'
import { type CustomerParams, getStatementSchema } from './openapi/schemas.ts'

interface StatementRoute {
  Params: CustomerParams
  Querystring: StatementQuery
}

export function addGetStatement(app: FastifyInstance, store: ReadStore): void {
  app.get<StatementRoute>('/statement', { schema: getStatementSchema }, (request, reply) => {
    const { from, to, page, page_size = entriesOfPage.default } = request.query
    const query: AccountQuery = {
      customer_id: request.params.customerId,
      ...{ from, to, page: clampPage(page) },
      page_size: page_size < 1 ? entriesOfPage.default : Math.min(page_size, entriesOfPage.max),
    }
    const write = (found: AccountPage) => serializeStatement(composeStatement(found, query))
    return sendOfCustomer(request, reply, store, () => store.readAccount(query), write)
  })
}
