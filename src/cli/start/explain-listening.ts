/** Says why listening failed and what to do. `names` says how the user sets the host and the port. */
export function explainListening(
  { code, message }: NodeJS.ErrnoException,
  { host, port }: { host: string; port: number },
  names: { host: string; port: string },
): string {
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${host} is in use. Stop the program that uses it, or choose another port with ${names.port}.`
  if (code === 'ENOTSUP')
    return 'Two processes cannot share a port on this system. Set REUSE_PORT=off, and give each process its own port.'
  if (code === 'EACCES')
    return `Port ${port} may not be used by this user. Choose a port above 1023 with ${names.port}.`
  if (['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'].includes(code ?? ''))
    return `${host} is not an address of this machine. Choose another address with ${names.host}.`
  return `Cannot listen on ${host}:${port}: ${message}`
}
