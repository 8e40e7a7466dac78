/** The house rules that no tool checks: names, sizes, and a README in each folder. */
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))
const folders = ["runtime", "actors", "http", "client", "deploy", "test"]
const columnsMax = 100
const linesMax = 300

const files = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8", withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
)
const sources = files.filter((file) => /\.(ts|mjs)$/.test(file))
const textOf = (file: string) => readFileSync(join(root, file), "utf8")
/** Sources that match, but for this one, which holds the patterns. */
const matching = (pattern: RegExp) =>
  sources.filter((file) => file !== "test/house.test.ts" && pattern.test(textOf(file)))

describe("the house", () => {
  it("has its top level", () => {
    const there = readdirSync(root)
    const needed = ["package.json", "tsconfig.json", "cluster.config.ts", "README.md", "LICENSE"]
    for (const name of [...folders, ...needed, "CHANGELOG.md", ".ci"]) {
      expect(there).toContain(name)
    }
  })

  it.each(folders)("%s/ has a README.md", (folder) => {
    expect(files).toContain(`${folder}/README.md`)
  })

  it("has a README.md in each folder of the runtime's backends", () => {
    expect(files).toContain("runtime/embedded/README.md")
  })

  it("names nothing utils, helpers, common or misc", () => {
    const vague = /(^|\/)(utils?|helpers?|common|misc)(\/|\.|$)/i
    expect(files.filter((file) => vague.test(file))).toEqual([])
  })

  it("names files in lower case", () => {
    expect(sources.filter((file) => !/^[a-z0-9.-]+$/.test(basename(file)))).toEqual([])
  })

  it("keeps files to 300 lines and lines to 100 columns", () => {
    const long = sources.filter((file) => textOf(file).trimEnd().split("\n").length > linesMax)
    const wide = sources.flatMap((file) =>
      textOf(file).split("\n").flatMap((line, at) =>
        line.length > columnsMax ? [`${file}:${at + 1}`] : []
      )
    )
    expect(long).toEqual([])
    expect(wide).toEqual([])
  })

  it("opens each source file of the service with what it is", () => {
    const service = sources.filter((file) => !file.startsWith("test/"))
    const bare = service.filter((file) => !/^(#!.*\n)?\/\*\*/.test(textOf(file)))
    expect(bare).toEqual([])
  })

  it("gives each kind of actor its protocol, table and actor", () => {
    const kinds = files.filter((file) => file.endsWith("/decide.ts")).map(dirname)
    for (const kind of kinds) {
      expect(files).toContain(`${kind}/protocol.ts`)
      expect(files).toContain(`${kind}/actor.ts`)
    }
  })

  it("silences a checker for one line only, and for one rule", () => {
    const silencing = /@ts-(ignore|nocheck)|(oxlint|eslint)-disable(?!-next-line \S+)/
    expect(matching(silencing)).toEqual([])
  })

  it("leaves nothing to be done later in its comments", () => {
    expect(matching(/\b(TODO|FIXME|XXX)\b/)).toEqual([])
  })

  it("has exact versions only, all from the public registry", () => {
    const lock = textOf("package-lock.json")
    expect(lock).not.toMatch(/"resolved"/)
    const manifest: Record<string, Record<string, string>> = JSON.parse(textOf("package.json"))
    const wanted = {
      ...manifest["dependencies"],
      ...manifest["devDependencies"],
      ...manifest["optionalDependencies"]
    }
    expect(Object.values(wanted).filter((version) => !/^(npm:\w+@)?\d+\.\d+\.\d+$/.test(version)))
      .toEqual([])
  })
})
