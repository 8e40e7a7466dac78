/** The base of the stylesheet in the sources is what its script makes of the package. */
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it } from "vitest"
import { stylesheet } from "../../http/formats/html/index.ts"
import { normalizeLicense, normalizeRules } from "../../http/formats/html/packages/normalize.ts"
import { root } from "./sources.ts"
import { run } from "./tools.ts"

const require = createRequire(import.meta.url)

const folder = dirname(require.resolve("modern-normalize"))

const read = (file: string): string => readFileSync(join(folder, file), "utf8")

/** The same for sheets that differ in comments and spaces only. */
const bare = (css: string): string =>
  css.replaceAll(/\/\*[^]*?\*\//g, "").replaceAll(/\s/g, "").replaceAll(";}", "}")

it("is made again from the package, and is the same", () => {
  const module = JSON.stringify(pathToFileURL(join(root, "deploy/generate/normalize.mjs")))
  const code = `import { makeNormalize } from ${module}; process.stdout.write(makeNormalize())`
  const made = run(process.execPath, ["--input-type=module", "-e", code])
  const source = readFileSync(join(root, "http/formats/html/packages/normalize.ts"), "utf8")
  expect([made.code, made.output === source]).toEqual([0, true])
})

it("has every rule of the package, and is below all other rules", () => {
  expect(bare(normalizeRules)).toBe(bare(read("modern-normalize.css")))
  expect(stylesheet.startsWith(normalizeRules)).toBe(true)
})

it("goes with its license to every browser", () => {
  const words = (text: string): string => text.trim().replaceAll(/\s+/g, " ")
  expect(words(normalizeLicense)).toBe(words(read("license")))
  expect(normalizeRules).toMatch(
    /^\/\*! modern-normalize v[\d.]+ \| MIT License \| https:[^*]+\*\/\*,/
  )
})

it("loads nothing", () => {
  expect(normalizeRules).not.toMatch(/@import|url\(|@font-face/)
})
