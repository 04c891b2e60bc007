/** A failure that the user can resolve. The message is one line that says what to do. It is printed without a stack. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, { exitCode = 1, ...options }: ErrorOptions & { exitCode?: number } = {}) {
    super(message, options)
    this.exitCode = exitCode
  }
}
