/** The documentation that the build has rendered into the package (`deploy/generate/docs.mjs`). */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Documentation } from "../http/index.ts"
import { packageFolder } from "./version.ts"

const siteFile = join(packageFolder, "dist/docs/site.json")

const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT"

const readSite = async (): Promise<string | undefined> => {
  try {
    return await readFile(siteFile, "utf8")
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** The documentation of this program, which is read at the first request for it. */
export const documentation = (): Documentation => new Documentation(readSite)
