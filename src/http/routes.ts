import type { FastifyInstance } from 'fastify'
import { type AuthOptions, guardCustomerRoutes } from './auth.ts'
import { addDownload, addDownloadRelated, addGetQr, createSourceCall } from './download.ts'
import { addFindPaymentPage } from './find-payment-page.ts'
import { addGetBalance } from './get-balance.ts'
import { addGetInvoice, type Sources } from './get-invoice.ts'
import { addGetStatement } from './get-statement.ts'
import { addHealth, type HealthOptions } from './health.ts'
import { createListChanges } from './list-changes.ts'
import { addGetSummary, addListInvoices } from './list-invoices.ts'
import { openapiSchema } from './openapi/operation-schemas.ts'
import { components } from './openapi/resources.ts'
import { listAllChangesSchema, listChangesSchema } from './openapi/schemas.ts'
import { addResourceMetadata } from './resource-metadata.ts'
import { sendJson } from './send-json.ts'
import { addStaticFiles, type StaticFile } from './static-files.ts'
import type { StoreOutage } from './store-outage.ts'

export const mcpPath = '/mcp'
export const signInPath = '/sign-in'

export interface RouteDependencies extends Sources, AuthOptions, HealthOptions {
  /** Whether answers may name the payment platform's own page. Default: true. */
  pay?: boolean | undefined
  /** Origins allowed by CORS. An empty list allows none. */
  corsOrigins?: readonly string[] | undefined
  /** Maximum of requests that wait for changes. Default: 2000. */
  maxWaiting?: number | undefined
  outage: StoreOutage
  apiDescription: Buffer
  /** Files served beside the API. None of these files is part of the OpenAPI document. */
  files?: readonly StaticFile[]
  /** Adds the route of MCP at `mcpPath`, which reads request bodies. Absent when MCP is not served. */
  mcp?: AddPost | undefined
  /**
   * Adds the route of the sign-in by e-mail at `signInPath`, which reads request bodies. Absent when nobody can sign
   * in by e-mail.
   */
  signIn?: AddPost | undefined
}

export type AddPost = (app: FastifyInstance, dependencies: RouteDependencies) => void

export function addRoutes(app: FastifyInstance, dependencies: RouteDependencies): void {
  const { store, apiDescription, pay = true, files = [] } = dependencies
  const { identity = { provider: null, publicUrl: null } } = dependencies
  for (const component of components) app.addSchema(component)

  addHealth(app, store, dependencies)
  dependencies.mcp?.(app, dependencies)
  dependencies.signIn?.(app, dependencies)
  app.get('/api/v1/openapi.json', { schema: openapiSchema }, async (_request, reply) => {
    return sendJson(reply, apiDescription)
  })
  addStaticFiles(app, files)
  addResourceMetadata(app, identity)
  const listChanges = createListChanges(app, dependencies)
  const ofStripe = { ...dependencies, callSource: createSourceCall(dependencies.payments) }
  // InvoiceXpress counts all requests of an account together, so these routes share one queue.
  const ofInvoiceXpress = { ...dependencies, callSource: createSourceCall(dependencies.documents) }
  const addCustomerRoutes = async (scope: FastifyInstance) => {
    addListInvoices(scope, { ...dependencies, pay })
    addGetSummary(scope, store)
    addGetBalance(scope, { ...dependencies, pay })
    addGetStatement(scope, store)
    addGetInvoice(scope, { ...dependencies, pay })
    addGetQr(scope, ofInvoiceXpress)
    addDownload(scope, 'ix', ofInvoiceXpress)
    addDownload(scope, 'payments', ofStripe)
    addDownloadRelated(scope, ofInvoiceXpress)
    if (pay) addFindPaymentPage(scope, dependencies)
    scope.get('/changes', { schema: listChangesSchema }, listChanges)
  }
  const addGuarded = async (scope: FastifyInstance) => {
    guardCustomerRoutes(scope, dependencies)
    scope.get('/changes', { schema: listAllChangesSchema }, listChanges)
    scope.register(addCustomerRoutes, { prefix: '/client/:customerId' })
  }
  app.register(addGuarded, { prefix: '/api/v1' })
}
