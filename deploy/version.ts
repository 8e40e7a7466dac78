/** The version of this program. */
import { Schema } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

const manifestAbove = (folder: string): string => {
  const manifest = join(folder, "package.json")
  if (existsSync(manifest)) return manifest
  const parent = dirname(folder)
  if (parent === folder) throw new Error("package.json of restante is missing")
  return manifestAbove(parent)
}

/** The version in package.json, which is above this file in the sources and in dist. */
export const version: string = Schema.decodeUnknownSync(Manifest)(
  readFileSync(manifestAbove(dirname(fileURLToPath(import.meta.url))), "utf8")
).version
