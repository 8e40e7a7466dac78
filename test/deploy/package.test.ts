/** What `npm pack` puts into the package. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, it } from "vitest"
import { interFont } from "../../http/formats/html/inter.ts"
import { root, textOf, wordAt } from "./sources.ts"

const manual = wordAt(JSON.parse(textOf("package.json")), "man")
const packedWithinMs = 240_000

interface Packed {
  readonly files: ReadonlyArray<{ readonly path: string }>
}

let files: ReadonlyArray<string> = []

beforeAll(() => {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"]
  // The format of npm's own output.
  const [report] = JSON.parse(
    execFileSync("npm", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
  ) as ReadonlyArray<Packed>
  files = report?.files.map(({ path }) => path) ?? []
}, packedWithinMs)

it("has the program, its documentation, the client, and all pages that its README links to", () => {
  expect(files).toEqual(
    expect.arrayContaining([
      ...["dist/bin/restante.js", "dist/client/index.d.ts", "dist/docs/site.json"],
      manual
    ])
  )
  const text = readFileSync(join(root, "README.md"), "utf8")
  const links = [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(([, path = ""]) => path)
  expect(links.length).toBeGreaterThan(10)
  expect(links.filter((path) => !files.includes(path))).toEqual([])
})

it("has the typeface of the pages, and its license", () => {
  const bundle = files.filter((path) => /^dist\/bin\/.*\.js$/.test(path)).map(textOf).join("")
  const lines = interFont.toString("base64").match(/.{92}/g) ?? []
  expect(lines.length).toBeGreaterThan(200)
  expect(lines.filter((line) => !bundle.includes(line))).toEqual([])
  expect(bundle).toContain("SIL OPEN FONT LICENSE Version 1.1")
})

it("has no tests, and can be published", () => {
  expect(files.filter((path) => path.startsWith("dist/test/"))).toEqual([])
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  expect(manifest).not.toHaveProperty("private")
})
