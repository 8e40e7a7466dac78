/**
 * Before suites that start the built service: what was compiled last is what they run. Compiling
 * itself is left to whoever runs them, as an editor does it anyway.
 */
import { bundleIfStale } from "../deploy/prepare.mjs"

export const setup = () => {
  if (!bundleIfStale()) throw new Error("the service could not be bundled")
}
