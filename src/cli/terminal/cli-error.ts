/** An end of the program that is no fault of its own: one line says what to do, and there is no stack to read. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, { exitCode = 1, ...options }: ErrorOptions & { exitCode?: number } = {}) {
    super(message, options)
    this.exitCode = exitCode
  }
}
