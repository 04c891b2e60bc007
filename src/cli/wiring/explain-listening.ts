/** Why a port cannot be listened on, and what to do. `names` is how each of the two is set. */
export function explainListening(
  { code, message }: NodeJS.ErrnoException,
  { host, port }: { host: string; port: number },
  names: { host: string; port: string },
): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is in use. Stop what uses it, or choose another with ${names.port}.`
    case 'EACCES':
      return `Port ${port} may not be used by this user. Choose one above 1023 with ${names.port}.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is not an address of this machine. Choose another with ${names.host}.`
    default:
      return `Cannot listen on ${host}:${port}: ${message}`
  }
}
