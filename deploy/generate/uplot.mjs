#!/usr/bin/env node
/**
 * Makes `http/formats/html/scripts/uplot.ts`, the library of the charts: `node
 * deploy/generate/uplot.mjs`. The file is in the sources, so that the service needs no package for
 * it; `test/deploy/uplot.test.ts` compares it with the package.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { brotliCompressSync } from "node:zlib"
import { base64Lines, licenseLines } from "./source-texts.mjs"

const require = createRequire(import.meta.url)

const folder = dirname(dirname(require.resolve("uplot")))

const read = (file) => readFileSync(join(folder, file), "utf8")

const { name, version } = JSON.parse(read("package.json"))

const packed = (file) =>
  `unpack(
  [
${base64Lines(brotliCompressSync(Buffer.from(read(file))))}
  ].join("")
)`

writeFileSync(
  new URL("../../http/formats/html/scripts/uplot.ts", import.meta.url),
  `/**
 * The charts of ${name} ${version}, as \`deploy/generate/uplot.mjs\` makes them of the package.
 * License: MIT, in {@link uplotLicense}.
 */
import { brotliDecompressSync } from "node:zlib"

const unpack = (base64: string): string =>
  brotliDecompressSync(Buffer.from(base64, "base64")).toString()

/** The script. It defines \`uPlot\`. */
export const uplotScript = ${packed("dist/uPlot.iife.min.js")}

/** Its stylesheet. */
export const uplotStyle = ${packed("dist/uPlot.min.css")}

/** The license, which goes with every copy. */
export const uplotLicense = [
${licenseLines(read("LICENSE"))}  ""
].join("\\n")
`
)
