/** Programs that are built from Go modules, which the cache keeps. Nothing is skipped. */
import { existsSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { root } from "./sources.ts"
import { must, toolOf } from "./tools.ts"

/** The longest build of a program, ms: for the hook that needs it. */
export const goBuildWithinMs = 1_800_000

/**
 * The path of a program, built at this version, with these build tags. Throws without Go, which
 * comes from the path or as Debian's `golang-go`, and without its module proxy.
 */
export const goProgram = async (
  module: string,
  version: string,
  tags: ReadonlyArray<string> = []
): Promise<string> => {
  const name = module.split("/").at(-1) ?? ""
  const folder = join(root, "node_modules/.cache/go", `${name}-${version}`)
  const binary = join(folder, name)
  if (existsSync(binary)) return binary
  const go = toolOf("go", "golang-go")
  // What an interrupted build left is not complete.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await must(go, ["-C", folder, "mod", "init", `restante.test/${name}`])
  await must(go, ["-C", folder, "get", `${module}@${version}`])
  const tagged = tags.length === 0 ? [] : ["-tags", tags.join(",")]
  await must(go, ["-C", folder, "build", ...tagged, "-o", `${binary}.unfinished`, module])
  await must("mv", [`${binary}.unfinished`, binary])
  return binary
}
