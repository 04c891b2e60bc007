/** Control addresses of a local service, under /_sandbox/. Another program uses them to move the clock and to cause faults. */
import type { Faults } from './faults.ts'
import { type Answer, answerOrError, jsonAnswer, SandboxError } from './spoil.ts'

export type Control<Sandbox> = (sandbox: Sandbox, search: URLSearchParams) => object | Promise<object>

export const controlError = (message: string, status = 400) => new SandboxError(status, message)

export const controlPath = '/_sandbox/'

export function answerControl<Sandbox>(
  controls: Record<string, Control<Sandbox>>,
  sandbox: Sandbox,
  method: string,
  url: URL,
): Promise<Answer> {
  const name = url.pathname.slice(controlPath.length)
  const found = Object.hasOwn(controls, name) ? controls[name] : undefined
  const answer = async () => {
    if (found === undefined || method !== 'POST')
      throw controlError(
        `POST ${controlPath} and one of ${Object.keys(controls).join(', ')}; not ${method} ${url.pathname}.`,
        404,
      )
    return jsonAnswer(200, await found(sandbox, url.searchParams))
  }
  return answerOrError(answer, (_status, message) => ({ error: { message } }))
}

/** Control addresses for faults, which both services share. */
export function faultControls<Name extends string, Route extends string>(
  faultNames: readonly Name[],
  routeNames: readonly Route[],
): Record<'faults' | 'chaos' | 'clear', Control<{ faults: Faults<Name, Route> }>> {
  return {
    faults({ faults }, search) {
      const route = readChoice(search, 'route', [...routeNames, '*' as const])
      const fault = readChoice(search, 'fault', faultNames)
      const retryAfter = search.get('retry_after')
      faults.set(route, fault, {
        ...(search.has('times') ? { times: readNumber(search, 'times', 1) } : {}),
        ...(retryAfter === null ? {} : { retryAfter }),
      })
      return { route, fault }
    },
    chaos({ faults }, search) {
      const share = readNumber(search, 'share', 0.1)
      if (share > 1) throw controlError(`share must be from 0 to 1, not ${share}.`)
      faults.setChaos(share)
      return { share }
    },
    clear({ faults }) {
      faults.clear()
      return {}
    },
  }
}

/** Runs `make`. An error of `make` is reported as a mistake of the caller. */
export function refuse<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw controlError((error as Error).message)
  }
}

export function readNumber(search: URLSearchParams, param: string, fallback: number): number {
  const text = search.get(param)
  if (text === null) return fallback
  if (!/^\d{1,12}(\.\d{1,6})?$/.test(text)) throw controlError(`${param} must be a number, not '${text}'.`)
  return Number(text)
}

export function readChoice<T extends string>(
  search: URLSearchParams,
  param: string,
  choices: readonly T[],
  fallback?: T,
): T {
  const text = search.get(param) ?? fallback
  const choice = choices.find(choice => choice === text)
  if (choice === undefined) throw controlError(`${param} must be one of ${choices.join(', ')}.`)
  return choice
}
