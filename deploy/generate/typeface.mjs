#!/usr/bin/env node
/**
 * Makes `http/formats/html/packages/inter.ts`, the typeface of the pages: `node
 * deploy/generate/typeface.mjs`. It is the variable font Inter of a package, with only the
 * characters, features and weights that the pages use. The file is in the sources, so that a build
 * needs no font tools, and `test/deploy/typeface.test.ts` makes it again and compares.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import subset from "subset-font"
import { base64Lines, licenseLines } from "./source-texts.mjs"

const require = createRequire(import.meta.url)

/** The package that the typeface is from. */
const folder = dirname(require.resolve("@fontsource-variable/inter/package.json"))

/** The made file. */
const typefaceFile = new URL("../../http/formats/html/packages/inter.ts", import.meta.url)

const between = (first, last) =>
  Array.from({ length: last - first + 1 }, (_, at) => String.fromCodePoint(first + at)).join("")

/** ASCII, Latin-1, and the punctuation of the pages. The reader's system has all others. */
const characters = between(0x20, 0x7e) + between(0xa0, 0xff) + "–—‘’“”„…†•‹›€™−Œœ"

/** Kerning, accents, and figures of one width for tables. */
const features = ["kern", "mark", "ccmp", "locl", "tnum"]

/** The weights that the stylesheet uses. */
const weights = { wght: { min: 400, max: 700 } }

/** The source of the file. */
export const makeTypeface = async () => {
  const read = (file) => readFileSync(join(folder, file))
  const { name, version } = JSON.parse(read("package.json"))
  const font = await subset(read("files/inter-latin-wght-normal.woff2"), characters, {
    targetFormat: "woff2",
    keepFeatures: features,
    variationAxes: weights,
    noHinting: true
  })
  return `/**
 * The typeface Inter, of ${name} ${version}, as
 * \`deploy/generate/typeface.mjs\` makes it.
 * License: SIL OFL 1.1, in {@link interLicense}.
 */

/** WOFF2: Latin, upright, weights from ${weights.wght.min} to ${weights.wght.max}. */
export const interFont = Buffer.from(
  [
${base64Lines(font)}
  ].join(""),
  "base64"
)

/** The license of the typeface, which goes with every copy of it. */
export const interLicense = [
${licenseLines(read("LICENSE").toString())}  ""
].join("\\n")
`
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(typefaceFile, await makeTypeface())
}
