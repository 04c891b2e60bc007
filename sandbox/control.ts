/** A local service's own addresses, under /_sandbox/: to let time pass and things go wrong from another program. */
import type { Faults } from './faults.ts'
import { type Answer, jsonAnswer } from './spoil.ts'

export type Control<Sandbox> = (sandbox: Sandbox, search: URLSearchParams) => object | Promise<object>

/** What the caller of a control did wrong. */
export class ControlError extends Error {
  readonly status: number

  constructor(message: string, status = 400) {
    super(message)
    this.status = status
  }
}

export const controlPath = '/_sandbox/'

/** Answers a request under /_sandbox/. */
export async function answerControl<Sandbox>(
  controls: Record<string, Control<Sandbox>>,
  sandbox: Sandbox,
  method: string,
  url: URL,
): Promise<Answer> {
  const name = url.pathname.slice(controlPath.length)
  const found = Object.hasOwn(controls, name) ? controls[name] : undefined
  try {
    if (found === undefined || method !== 'POST')
      throw new ControlError(
        `POST ${controlPath} and one of ${Object.keys(controls).join(', ')}; not ${method} ${url.pathname}.`,
        404,
      )
    return jsonAnswer(200, await found(sandbox, url.searchParams))
  } catch (error) {
    const { status, message } =
      error instanceof ControlError ? error : { status: 500, message: String(error) }
    return jsonAnswer(status, { error: { message } })
  }
}

/** What both services let go wrong, and put right. */
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
      if (share > 1) throw new ControlError(`share must be from 0 to 1, not ${share}.`)
      faults.setChaos(share)
      return { share }
    },
    clear({ faults }) {
      faults.clear()
      return {}
    },
  }
}

/** What `make` returns; what it throws is the caller's mistake. */
export function refuse<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new ControlError((error as Error).message)
  }
}

export function readNumber(search: URLSearchParams, param: string, fallback: number): number {
  const text = search.get(param)
  if (text === null) return fallback
  if (!/^\d{1,12}(\.\d{1,6})?$/.test(text))
    throw new ControlError(`${param} must be a number, not '${text}'.`)
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
  if (choice === undefined) throw new ControlError(`${param} must be one of ${choices.join(', ')}.`)
  return choice
}
