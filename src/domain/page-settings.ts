/** The service's settings in the billing page: written by the service, read by the page. Imports nothing. */

/** The company whose page it is. */
export interface Brand {
  name: string | null
  /** Address of an image. */
  logo: string | null
  /** #rrggbb. */
  accent: string | null
  /** A mail address, or an https one. */
  support: string | null
  /** The seller's, on every printed page of a statement. */
  taxId: string | null
  address: string | null
  /** Time zone of the days in CSV files. */
  timeZone: string
}

/** The systems whose PDFs can be downloaded: a button for another one could only fail. */
export interface Downloads {
  ix: boolean
  payments: boolean
}

export interface PageSettings {
  /** Origins whose pages may show this one in a frame. */
  embedOrigins: readonly string[]
  /** Whether open invoices have a button to pay. */
  pay: boolean
  downloads: Downloads
  /** Whether links are sent to the e-mail addresses of customers. */
  signIn: boolean
  brand: Brand
}
