/** The tarball of `@restante/runtime`: installed in an empty project, checked, bundled and run. */
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linksOf } from "../docs/pages.ts"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { installedWithinMs, packed, type Project, projectWith,
  type Tarball } from "./package-projects.ts"
import { domTypes, storedProgram, stricter, writeExamples,
  writeHttpExamples } from "./runtime-programs.ts"
import { textOf, treeAt } from "./sources.ts"

let tarball: Tarball
let project: Project

beforeAll(async () => {
  tarball = packed("runtime")
  project = await projectWith(tarball.path)
}, installedWithinMs)

afterAll(cleanUp)

const manifest: unknown = JSON.parse(textOf("runtime/package.json"))
const peers = Object.keys(treeAt(manifest, "peerDependencies"))
const entries = Object.keys(treeAt(manifest, "exports")).filter((name) => !name.endsWith(".json"))

const entriesProgram = [
  ...entries.map((name, at) => `import * as entry${at} from "@restante/runtime${name.slice(1)}"`),
  `console.log([${entries.map((_, at) => `entry${at}`)}].every((one) => Object.keys(one).length))`
].join("\n")

const printed = "5 visits, 3 tokens\n"

it("has code, types, README and license, and nothing else", () => {
  expect(tarball.files).toEqual(
    expect.arrayContaining(["dist/index.js", "dist/index.d.ts", "dist/nats/index.js"])
  )
  const other = tarball.files.filter((path) => !/^dist\/[a-z/-]+\.(js|d\.ts)$/.test(path))
  expect(other).toEqual(["LICENSE", "README.md", "package.json"])
})

it("has a README without links to files that the package has not", () => {
  expect(linksOf("runtime/README.md").map(({ written }) => written)).toEqual([])
})

it("installs neither a database nor a client of NATS", () => {
  expect(project.packages()).toEqual(expect.arrayContaining(["@restante/runtime", "effect"]))
  expect(peers.length).toBeGreaterThan(3)
  expect(project.packages().filter((name) => peers.includes(name))).toEqual([])
})

describe("with memory alone", () => {
  it("has strict types, and runs the examples of its README as ES modules", async () => {
    writeExamples(project)
    expect((await project.check("main.ts", stricter)).errors).toEqual([])
    expect(await project.run("main.js")).toBe(printed)
  })

  it("serves actors over HTTP, by the examples of its face", async () => {
    writeHttpExamples(project)
    expect((await project.check("http.ts", stricter)).errors).toEqual([])
    expect(await project.run("http.js")).toBe("200 2\n")
  })

  it("is bundled into one file, which needs nothing else", async () => {
    writeExamples(project)
    const bundle = await project.bundle("main.ts", "node")
    const alone = join(temporaryFolder(), "bundle.mjs")
    copyFileSync(bundle, alone)
    expect(await project.run(alone)).toBe(printed)
  })

  it("fails with the name of what a backend lacks", async () => {
    writeExamples(project)
    project.write("stored.ts", storedProgram)
    expect((await project.check("stored.ts", stricter)).errors).toEqual([])
    await expect(project.run("stored.js")).rejects.toThrow(/EngineMissing[\s\S]*classic-level/)
    project.write("nats.js", "import \"@restante/runtime/nats\"\n")
    await expect(project.run("nats.js")).rejects.toThrow("Cannot find package '@nats-io/")
  })
})

/** Optional packages, in the versions that the project is tested with. */
const optional = (wanted: (name: string) => boolean): ReadonlyArray<string> => {
  const { packages } = JSON.parse(textOf("package-lock.json"))
  return peers.filter(wanted).map((name) => `${name}@${packages[`node_modules/${name}`].version}`)
}

const isOfNats = (name: string): boolean => name.startsWith("@nats-io/")

describe("with the clients of NATS", () => {
  beforeAll(async () => {
    await project.install(...optional(isOfNats))
  }, installedWithinMs)

  it("has strict types and code at every entry, and needs no database", async () => {
    expect(project.packages()).not.toContain("classic-level")
    project.write("entries.ts", entriesProgram)
    expect((await project.check("entries.ts", domTypes)).errors).toEqual([])
    expect(await project.run("entries.js")).toBe("true\n")
  })
})

describe("with a database", () => {
  beforeAll(async () => {
    project = await projectWith(tarball.path, ...optional((name) => name === "classic-level"))
  }, installedWithinMs)

  it("keeps in a folder what it was asked, and needs no client of NATS", async () => {
    expect(project.packages().filter(isOfNats)).toEqual([])
    writeExamples(project)
    project.write("stored.ts", storedProgram)
    expect((await project.check("stored.ts", stricter)).errors).toEqual([])
    expect(await project.run("stored.js")).toBe("2\n")
    expect(await project.run("stored.js")).toBe("4\n")
  })
})
