/**
 * Bundles the service before suites that start it, from the last compiled files. Compiling
 * them is a step of its own (`npm run compile`).
 */
import { bundleIfStale } from "../deploy/prepare.mjs"

export const setup = () => {
  if (!bundleIfStale()) throw new Error("the service could not be bundled")
}
