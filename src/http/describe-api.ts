/**
 * Derives the OpenAPI document from the routes' schemas. The document is committed as `openapi.json` and served from
 * there.
 */
import swagger from '@fastify/swagger'
import Fastify from 'fastify'
import { version } from './package.ts'
import { addRoutes, type RouteDependencies } from './routes.ts'

export async function describeApi(): Promise<string> {
  const app = Fastify()
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => JSON.stringify)
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Fatura',
        version,
        summary: "A customer's invoices, read-only.",
        description:
          "Lists, filters and searches a customer's invoices and returns their details. Each invoice shows the payment platform's state and the state of " +
          'the certified document in an external invoicing system, side by side. Within /api/v1 there are only ' +
          'additions. A breaking change would be /api/v2.',
        license: { name: 'MIT', identifier: 'MIT' },
        contact: { name: 'The operator of this service' },
      },
      servers: [{ url: '/', description: 'The host that serves this document.' }],
      tags: [
        { name: 'invoices', description: "A customer's invoices and their PDFs." },
        { name: 'operations', description: 'For operators, and for exploring the API.' },
      ],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description:
              'One of three kinds of token: an access token made with `fatura token create` for one, several or all customers, a JWT of the configured identity provider, or the token of a customer link.',
          },
        },
      },
    },
    refResolver: { buildLocalReference: schema => String(schema.$id) },
  })
  // The handlers are registered but never run, so their dependencies may be missing.
  addRoutes(app, { spendRequest: null } as RouteDependencies)
  await app.ready()
  const document = app.swagger()
  await app.close()
  return `${JSON.stringify(document, (_key, value) => hoistExplode(unwrapReference(value)), 2)}\n`
}

/** Replaces a schema that contains only a reference by the reference itself. */
function unwrapReference(value: { allOf?: unknown[] } | undefined): unknown {
  return value?.allOf?.length === 1 && Object.keys(value).length === 1 ? value.allOf[0] : value
}

/**
 * Moves `explode` from a parameter's schema to the parameter. The plugin leaves it in the schema, where it means
 * nothing.
 */
function hoistExplode(value: unknown): unknown {
  const { schema } = (value ?? {}) as { schema?: { explode?: boolean } }
  if (schema?.explode === undefined) return value
  const { explode, ...rest } = schema
  return { ...(value as object), explode, schema: rest }
}
