/** The typeface in the sources is what its script makes of the package. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it } from "vitest"
import { interFont } from "../../http/formats/html/packages/inter.ts"
import { root } from "./sources.ts"
import { run } from "./tools.ts"

/** Bytes of the file: a page waits for it only if it is there before the page is painted. */
const bytesMax = 24_000

it("is made again from the package, and is the same", () => {
  const module = JSON.stringify(pathToFileURL(join(root, "deploy/generate/typeface.mjs")))
  const code = `import { makeTypeface } from ${module}; process.stdout.write(await makeTypeface())`
  const made = run(process.execPath, ["--input-type=module", "-e", code])
  const source = readFileSync(join(root, "http/formats/html/packages/inter.ts"), "utf8")
  expect([made.code, made.output === source]).toEqual([0, true])
})

it("is small", () => {
  expect(interFont.length).toBeLessThan(bytesMax)
})
