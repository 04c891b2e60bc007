/** Stripe's library in one file: as the hundreds that it consists of, it takes twice as long to load. */
import { rename } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export async function buildStripe(buildFolder: URL): Promise<void> {
  const written = new URL(`stripe.${process.pid}.cjs`, buildFolder)
  await build({
    entryPoints: [createRequire(import.meta.url).resolve('stripe')],
    outfile: fileURLToPath(written),
    bundle: true,
    platform: 'node',
    target: 'node24',
  })
  // Others may read while this writes: it comes whole.
  await rename(written, new URL('stripe.cjs', buildFolder))
}
