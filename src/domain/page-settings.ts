/** Settings that the service writes into the billing page and that the page reads. Imports nothing. */

export interface Brand {
  name: string | null
  /** URL of the logo image. */
  logo: string | null
  /** Accent colour of the page, as #rrggbb. */
  accent: string | null
  /** E-mail address or https URL of the customer support. */
  support: string | null
  /** Tax ID of the seller, for every printed page of a statement. */
  taxId: string | null
  address: string | null
  /** Time zone of the days in CSV files. */
  timeZone: string
}

/** The systems whose PDFs can be downloaded. The page shows no button for other systems. */
export interface Downloads {
  ix: boolean
  payments: boolean
}

export interface PageSettings {
  /** Origins whose pages may show the billing page in a frame. */
  embedOrigins: readonly string[]
  /** True when open invoices have a button to pay. */
  pay: boolean
  downloads: Downloads
  /** True when customers can get a sign-in link by e-mail. */
  signIn: boolean
  brand: Brand
}
