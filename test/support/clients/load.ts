/** A bounded load on the API: loops that ask one request after the other, and keep what became of each. */
import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Sample {
  /** The request's path and query. */
  path: string
  /** When the answer was complete, by performance.now(). */
  at: number
  /** In milliseconds, from the request to the end of its answer. */
  took: number
  /** 0 when there was no answer. */
  status: number
  headers: NodeJS.Dict<string | string[]>
  /** The answer's body, or why there is none. */
  text: string
}

export interface LoadOptions {
  address: string
  paths: readonly string[]
  token: string
  loops: number
  /** Between an answer and the loop's next request, in milliseconds. */
  pause: number
  /** The load ends by itself after so many milliseconds. */
  atMost: number
}

export interface Load {
  /** What came back so far, in the order of its coming. */
  samples: readonly Sample[]
  /** Lets the requests under way finish. */
  stop(): Promise<void>
}

/** Far longer than any answer takes: only a hang reaches it. */
const patience = 300_000

export function startLoad({ address, paths, token, loops, pause, atMost }: LoadOptions): Load {
  const agent = new Agent({ keepAlive: true })
  const samples: Sample[] = []
  const until = performance.now() + atMost
  let stopped = false

  async function loop(first: number): Promise<void> {
    for (let turn = first; !stopped && performance.now() < until; turn++) {
      samples.push(await ask(`${address}${paths[turn % paths.length]}`, token, agent))
      await sleep(pause)
    }
  }

  const running = Promise.all(Array.from({ length: loops }, (_, first) => loop(first)))
  return {
    samples,
    async stop() {
      stopped = true
      await running
      agent.destroy()
    },
  }
}

/** One request. It never rejects: having no answer is a result, too. */
export function ask(url: string, token: string, agent = new Agent(), patienceMs = patience): Promise<Sample> {
  const started = performance.now()
  const { pathname, search } = new URL(url)
  return new Promise(resolve => {
    const finish = (status: number, headers: Sample['headers'], text: string) => {
      const at = performance.now()
      resolve({ path: pathname + search, at, took: at - started, status, headers, text })
    }
    const fail = (error: Error) => finish(0, {}, String(error))
    const headers = { authorization: `Bearer ${token}` }
    request(url, { agent, headers, signal: AbortSignal.timeout(patienceMs) }, incoming => {
      let text = ''
      incoming.setEncoding('utf8')
      incoming.on('data', chunk => {
        text += chunk
      })
      incoming.on('error', fail)
      incoming.on('end', () => finish(incoming.statusCode ?? 0, incoming.headers, text))
    })
      .on('error', fail)
      .end()
  })
}
