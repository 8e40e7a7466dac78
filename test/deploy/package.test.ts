/** What `npm pack` puts into the package. */
import { execFileSync } from "node:child_process"
import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { interFont } from "../../http/formats/html/packages/inter.ts"
import { linksOf } from "../docs/pages.ts"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { root, textOf, trackedFiles } from "./sources.ts"

const manual: ReadonlyArray<string> = JSON.parse(textOf("package.json")).man
const packedWithinMs = 240_000

interface Packed {
  readonly files: ReadonlyArray<{ readonly path: string }>
}

afterAll(cleanUp)

let files: ReadonlyArray<string> = []

const packedOf = (folder: string): ReadonlyArray<string> => {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"]
  // The format of npm's own output.
  const [report] = JSON.parse(
    execFileSync("npm", args, {
      cwd: folder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    })
  ) as ReadonlyArray<Packed>
  return report?.files.map(({ path }) => path) ?? []
}

beforeAll(() => {
  files = packedOf(root)
}, packedWithinMs)

/** A link to a folder leads to what the package has in it. */
const leadsSomewhere = (path: string, among: ReadonlyArray<string>): boolean =>
  among.some((file) => file === path || file.startsWith(`${path}/`))

/** The links of these pages that lead to nothing of a package. */
const deadLinks = (pages: ReadonlyArray<string>, among: ReadonlyArray<string>) =>
  pages.flatMap(linksOf).filter(({ path }) => !leadsSomewhere(path, among))
    .map(({ page, written }) => `${page}: ${written}`)

const isPage = (path: string): boolean => path.endsWith(".md")

it("has the program and its documentation", () => {
  expect(files).toEqual(
    expect.arrayContaining([
      ...["dist/bin/restante.js", "dist/docs/site.json"],
      ...["README.md", "docs/quick-start.md", "http/resources/mailboxes/README.md"],
      ...manual
    ])
  )
  expect([...manual].sort()).toEqual(files.filter((path) => path.startsWith("dist/man/")).sort())
})

it("has everything that its pages link to", () => {
  const pages = files.filter(isPage)
  expect(pages.flatMap(linksOf).length).toBeGreaterThan(400)
  expect(deadLinks(pages, files)).toEqual([])
})

it("of Python has a README without links to the files of the repository", () => {
  const project = textOf("client/python/pyproject.toml")
  const readme = `client/python/${/^readme = "(.+)"$/m.exec(project)?.[1]}`
  expect(linksOf(readme).length).toBeGreaterThan(0)
  expect(deadLinks([readme], [readme])).toEqual([])
})

it("has no passwords of a cluster that was tried out in the clone", () => {
  const folder = temporaryFolder()
  const manifests = join(folder, "deploy/manifests")
  cpSync(join(root, "package.json"), join(folder, "package.json"))
  cpSync(join(root, "deploy/manifests"), manifests, { recursive: true })
  for (const name of [".env", "secret-key"]) writeFileSync(join(manifests, name), "secret\n")
  const tracked = trackedFiles()
  const found = packedOf(folder)
  expect(found).toContain("deploy/manifests/compose.yaml")
  expect(found.filter((path) => !tracked.includes(path))).toEqual([])
}, packedWithinMs)

it("has the typeface and the icons of the pages, and their licenses", () => {
  const bundle = files.filter((path) => /^dist\/bin\/.*\.js$/.test(path)).map(textOf).join("")
  const lines = interFont.toString("base64").match(/.{92}/g) ?? []
  expect(lines.length).toBeGreaterThan(200)
  expect(lines.filter((line) => !bundle.includes(line))).toEqual([])
  expect(bundle).toContain("SIL OPEN FONT LICENSE Version 1.1")
  expect(bundle).toContain("Lucide Icons and Contributors")
})

it("has the library of the charts, and its license", () => {
  const bundle = files.filter((path) => /^dist\/bin\/.*\.js$/.test(path)).map(textOf).join("")
  const source = textOf("http/formats/html/scripts/uplot.ts")
  const lines = source.match(/(?<=^ +")[\w+/]{92}(?=",$)/gm) ?? []
  expect(lines.length).toBeGreaterThan(200)
  expect(lines.filter((line) => !bundle.includes(line))).toEqual([])
  expect(bundle).toContain("Copyright (c) 2022 Leon Sorokin")
})

it("has no tests, and can be published", () => {
  expect(files.filter((path) => /^dist\/(examples|test)\//.test(path))).toEqual([])
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  expect(manifest).not.toHaveProperty("private")
})
