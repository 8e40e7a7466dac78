#!/usr/bin/env node
/**
 * `npm run build:python`: writes the OpenAPI document of the compiled service, and builds a wheel
 * of `client/python`. That generates the client of this document.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { baseUrl, clientDocument } from "./client-document.mjs"
import { inRoot, run } from "../prepare.mjs"

const folder = "dist/python"

/** A service has its own base URL, with which the URIs of its problems begin. */
const isOfProblems = (part) =>
  Array.isArray(part.enum) && part.enum.every((uri) => `${uri}`.startsWith(`${baseUrl}/`))

const withoutBaseUrl = (part) => {
  if (Array.isArray(part)) return part.map(withoutBaseUrl)
  if (typeof part !== "object" || part === null) return part
  const { enum: _, ...rest } = part
  const kept = isOfProblems(part) ? rest : part
  return Object.fromEntries(Object.entries(kept).map(([name, one]) => [name, withoutBaseUrl(one)]))
}

// A wheel of another version would be installed beside the new one.
rmSync(inRoot(folder), { recursive: true, force: true })
mkdirSync(inRoot(folder), { recursive: true })
const document = withoutBaseUrl(clientDocument())
writeFileSync(inRoot(`${folder}/openapi.json`), JSON.stringify(document))

// Where the builder looks for it.
copyFileSync(inRoot("LICENSE"), inRoot("client/python/LICENSE"))

const pip = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
const isBuilt = run("python3", [...pip, "--wheel-dir", folder, "client/python"])
if (!isBuilt) {
  process.stderr.write(
    "The wheel was not built; see above. It needs Python 3.11 or later with pip and venv (Debian's "
      + "python3-venv), and the registry of pip.\n"
  )
}
process.exitCode = isBuilt ? 0 : 1
