/** The tarball of `@restante/runtime`: installed in an empty project, checked, bundled and run. */
import { copyFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linksOf } from "../docs/pages.ts"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { installedWithinMs, nodeTypes, packed, type Project, projectWith,
  type Tarball } from "./package-projects.ts"
import { root, textOf, treeAt } from "./sources.ts"

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

/** The entry that has what a file of the sources has. */
const entryOf = (path: string): string =>
  path === "index.ts" ? "/effect" : path === "main.ts" ? "" : `/${path.split("/")[0]}`

/** An example of the sources as a program of the project. */
const asProgram = (text: string): string =>
  text.replace(
    /"(?:\.\.\/)+runtime\/([^"]+)"/g,
    (_, path: string) => `"@restante/runtime${entryOf(path)}"`
  )
    .replace(/"(\.\/[^"]+)\.ts"/g, "\"$1.js\"")

const examples = "test/runtime/examples"

/** The examples of the README, and a program that prints what they return. */
const writeExamples = () => {
  for (const name of readdirSync(join(root, examples))) {
    project.write(name, asProgram(textOf(`${examples}/${name}`)))
  }
  const main = `import { Effect } from "effect"
import { program } from "./run.js"
console.log(await Effect.runPromise(program))
`
  project.write("main.ts", main)
}

const stored = `import { Effect, Layer } from "effect"
import { address, singleNodePlacement, System } from "@restante/runtime/effect"
import { embedded } from "@restante/runtime/embedded"
import { counter } from "./counter.js"

const node = System.layer({ behaviors: [counter] }).pipe(
  Layer.provide([embedded("data"), singleNodePlacement])
)
const program = Effect.gen(function*() {
  const system = yield* System
  return yield* system.ask(address("counter", "visits"), { _tag: "Add", by: 2 })
})
console.log(await Effect.runPromise(program.pipe(Effect.provide(node))))
`

const entriesProgram = [
  ...entries.map((name, at) => `import * as entry${at} from "@restante/runtime${name.slice(1)}"`),
  `console.log([${entries.map((_, at) => `entry${at}`)}].every((one) => Object.keys(one).length))`
].join("\n")

/** The types of Effect name some of the DOM, which a project has by default. */
const { lib: _, ...withDom } = nodeTypes

/** Stricter than `strict`; the types of the clients of NATS do not pass it. */
const stricter = { ...withDom, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }

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
    writeExamples()
    expect((await project.check("main.ts", stricter)).errors).toEqual([])
    expect(await project.run("main.js")).toBe(printed)
  })

  it("is bundled into one file, which needs nothing else", async () => {
    writeExamples()
    const bundle = await project.bundle("main.ts", "node")
    const alone = join(temporaryFolder(), "bundle.mjs")
    copyFileSync(bundle, alone)
    expect(await project.run(alone)).toBe(printed)
  })

  it("fails with the name of what a backend lacks", async () => {
    writeExamples()
    project.write("stored.ts", stored)
    expect((await project.check("stored.ts", stricter)).errors).toEqual([])
    await expect(project.run("stored.js")).rejects.toThrow(/EngineMissing[\s\S]*classic-level/)
    project.write("nats.js", "import \"@restante/runtime/nats\"\n")
    await expect(project.run("nats.js")).rejects.toThrow("Cannot find package '@nats-io/")
  })
})

describe("with the optional packages", () => {
  beforeAll(async () => {
    const { packages } = JSON.parse(textOf("package-lock.json"))
    await project.install(
      ...peers.filter((name) => name !== "@nxtedition/rocksdb")
        .map((name) => `${name}@${packages[`node_modules/${name}`].version}`)
    )
  }, installedWithinMs)

  it("has strict types and code at every entry", async () => {
    project.write("entries.ts", entriesProgram)
    expect((await project.check("entries.ts", withDom)).errors).toEqual([])
    expect(await project.run("entries.js")).toBe("true\n")
  })

  it("keeps what it was asked in a folder", async () => {
    writeExamples()
    project.write("stored.ts", stored)
    expect((await project.check("stored.ts", stricter)).errors).toEqual([])
    expect(await project.run("stored.js")).toBe("2\n")
    expect(await project.run("stored.js")).toBe("4\n")
  })
})
