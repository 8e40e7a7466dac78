/** The icons in the sources are what their script makes of the package, and all are used. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it } from "vitest"
import { iconShapes } from "../../http/formats/html/packages/lucide.ts"
import { root, textOf } from "./sources.ts"
import { run } from "./tools.ts"

it("are made again from the package, and are the same", () => {
  const module = JSON.stringify(pathToFileURL(join(root, "deploy/generate/icons.mjs")))
  const code = `import { makeIcons } from ${module}; process.stdout.write(makeIcons())`
  const made = run(process.execPath, ["--input-type=module", "-e", code])
  const source = readFileSync(join(root, "http/formats/html/packages/lucide.ts"), "utf8")
  expect([made.code, made.output === source]).toEqual([0, true])
})

it("are shapes without scripts, links or styles, and each has a use", () => {
  const shape = /^(?:<(?:path|rect|circle|line|polyline)(?: [a-z0-9]+="[\w .,-]+")+\/>)+$/
  const names = Object.entries(iconShapes)
  expect(names.filter(([, shapes]) => !shape.test(shapes))).toEqual([])
  const pages = readdirSync(join(root, "http"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => textOf(`http/${path}`)).join("\n")
  expect(names.filter(([name]) => !pages.includes(`"${name}"`)).map(([name]) => name)).toEqual([])
})
