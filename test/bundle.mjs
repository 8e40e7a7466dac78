/**
 * Bundles the service before suites that start it, from the last compiled files, renders its
 * documentation, and writes the packages of the workspaces. Compiling the files is a step of its
 * own (`npm run compile`).
 */
import { writePackages } from "../deploy/generate/packages.mjs"
import { bundleIfStale, renderDocsIfStale } from "../deploy/prepare.mjs"

export const setup = () => {
  if (!bundleIfStale()) throw new Error("the service could not be bundled")
  if (!renderDocsIfStale()) throw new Error("the documentation could not be rendered")
  writePackages()
}
