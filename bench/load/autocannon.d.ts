/** The part of autocannon that is used; it brings no types. */
declare module 'autocannon' {
  interface Request {
    method: 'GET'
    path: string
    headers: Record<string, string>
  }
  interface Client {
    setRequests(requests: readonly Request[]): void
  }
  interface Options {
    url: string
    connections: number
    duration: number
    overallRate?: number
    timeout: number
    setupClient(client: Client): void
  }
  interface Result {
    errors: number
    timeouts: number
  }
  interface Instance extends PromiseLike<Result> {
    on(
      event: 'response',
      listener: (client: Client, status: number, bytes: number, milliseconds: number) => void,
    ): void
  }
  export default function autocannon(options: Options): Instance
}
