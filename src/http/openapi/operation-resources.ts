import { errorCodes } from '../../domain/errors.ts'
import { object, oneOf, refer, resource, text, texts } from './schema-parts.ts'

const error = {
  code: refer('ErrorCode'),
  message: text('Text for people that names the fault and what is allowed.'),
  param: text('Name of the parameter that is wrong.'),
  request_id: text('ID of this request in the logs.'),
}

export const operationResources = [
  resource('Health', 'The answer of a healthy process.', {
    status: oneOf(['ok'], 'Always `ok`. A failure is answered with an error instead.'),
  }),
  resource(
    'ResourceMetadata',
    'Protected resource metadata (RFC 9728).',
    {
      resource: text('The address of this API.'),
      authorization_servers: texts('The issuers whose tokens are accepted.'),
      scopes_supported: texts('The scopes that a token must have.'),
      bearer_methods_supported: texts('Way to send a token: always `header`.'),
      resource_name: text('Name of this API.'),
    },
    ['authorization_servers', 'scopes_supported'],
  ),
  resource('ErrorBody', 'Every error, on every route, has this shape.', {
    error: { ...object(error, ['param']), description: 'The error.' },
  }),
  {
    $id: 'ErrorCode',
    ...oneOf(Object.keys(errorCodes), 'Code of the error. It does not change, so programs can decide by it.'),
  },
]
