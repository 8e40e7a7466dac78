#!/usr/bin/env node
/**
 * Makes `http/formats/html/packages/normalize.ts`, the base of the stylesheet: `node
 * deploy/generate/normalize.mjs`. It is the file of a package without its comments. The file is in
 * the sources, so that a build needs no package for it; `test/deploy/normalize.test.ts` makes it
 * again and compares.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { licenseLines } from "./source-texts.mjs"

const require = createRequire(import.meta.url)

const sheet = require.resolve("modern-normalize")

/** The made file. */
const normalizeFile = new URL("../../http/formats/html/packages/normalize.ts", import.meta.url)

/** The rules, one a line. */
const rulesOf = (css) =>
  css.replaceAll(/\/\*[^]*?\*\//g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ?([{}:;,]) ?/g, "$1")
    .replaceAll(";}", "}")
    .trim()
    .match(/[^}]+\}/g) ?? []

const ruleColumns = 88

/** A rule as texts of the list: a long one is several, and none ends within a word. */
const ruleLines = (rule) =>
  (rule.match(new RegExp(`.{1,${ruleColumns}}(?:[,;} ]|$)`, "g")) ?? [])
    .map((line) => `  ${JSON.stringify(line)},\n`).join("")

/** The source of the file. */
export const makeNormalize = () => {
  const read = (file) => readFileSync(join(dirname(sheet), file), "utf8")
  const { name, version } = JSON.parse(read("package.json"))
  const css = read("modern-normalize.css")
  const [banner = ""] = /^\/\*![^]*?\*\//.exec(css) ?? []
  return `/**
 * The base of the stylesheet, of ${name} ${version}, as
 * \`deploy/generate/normalize.mjs\` makes it.
 * License: MIT, in {@link normalizeLicense}.
 */

/** Rules that make the defaults of browsers the same, below a line that names their license. */
export const normalizeRules = [
${[banner, ...rulesOf(css)].map(ruleLines).join("")}  "\\n"
].join("")

/** The license of these rules, which goes with every copy of them. */
export const normalizeLicense = [
${licenseLines(read("license"))}  ""
].join("\\n")
`
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(normalizeFile, makeNormalize())
}
