/** The library of the charts in the sources is that of its package. */
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { brotliCompressSync } from "node:zlib"
import { expect, it } from "vitest"
import { chartsScript } from "../../http/formats/html/index.ts"
import { uplotLicense, uplotScript, uplotStyle } from "../../http/formats/html/scripts/uplot.ts"

const require = createRequire(import.meta.url)

const folder = dirname(dirname(require.resolve("uplot")))

const read = (file: string): string => readFileSync(join(folder, file), "utf8")

/** Of the script, compressed: 60 kB are for all scripts of a page together. */
const bytesMax = 30_000

it("is the file of the package, with its stylesheet", () => {
  expect(uplotScript).toBe(read("dist/uPlot.iife.min.js"))
  expect(uplotStyle).toBe(read("dist/uPlot.min.css"))
})

it("goes with its license to every browser", () => {
  expect(uplotLicense.trim()).toBe(read("LICENSE").trim())
  expect(chartsScript.startsWith(`/*!\n${uplotLicense}*/\n`)).toBe(true)
})

it("is small", () => {
  expect(brotliCompressSync(Buffer.from(chartsScript)).length).toBeLessThan(bytesMax)
})
