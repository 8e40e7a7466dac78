/** The version of this program, and the folder of its package. */
import { Schema } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

/** The nearest folder from here upwards with a package.json. */
const packageAbove = (folder: string): string => {
  if (existsSync(join(folder, "package.json"))) return folder
  const parent = dirname(folder)
  if (parent === folder) throw new Error("package.json of restante is missing")
  return packageAbove(parent)
}

/** The folder of package.json, which is above this file in the sources and in dist. */
export const packageFolder: string = packageAbove(dirname(fileURLToPath(import.meta.url)))

/** The version in package.json. */
export const version: string = Schema.decodeUnknownSync(Manifest)(
  readFileSync(join(packageFolder, "package.json"), "utf8")
).version
