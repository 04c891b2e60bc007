/** InvoiceXpress' SAF-T file of a month: made on request, then at an address that anybody may read it at. */
import type { InvoiceXpressOptions } from './client.ts'

export async function openSaftExport(
  _options: InvoiceXpressOptions,
  _month: string,
  _onWait: (seconds: number) => void,
): Promise<AsyncIterable<Uint8Array>> {
  throw new Error('not yet')
}
