/** The runtime as a package on stores that the short form does not start: RocksDB and NATS. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { cleanUp } from "../e2e/process.ts"
import { type ServerProcess, startServer } from "../runtime/nats/servers.ts"
import { installedWithinMs, packed, type Project, projectWith } from "./package-projects.ts"
import { domTypes, natsProgram, storedProgram, stricter,
  writeExamples } from "./runtime-programs.ts"
import { textOf, treeAt } from "./sources.ts"

const versions = treeAt(JSON.parse(textOf("package.json")))

let project: Project
let server: ServerProcess

beforeAll(async () => {
  const { dependencies, optionalDependencies } = Object(versions)
  const clients = ["transport-node", "jetstream", "kv"].map((name) => `@nats-io/${name}`)
  project = await projectWith(
    packed("runtime").path,
    ...clients.map((name) => `${name}@${dependencies[name]}`),
    `@nxtedition/rocksdb@${optionalDependencies["@nxtedition/rocksdb"]}`
  )
  writeExamples(project)
  server = await startServer()
}, installedWithinMs)

afterAll(async () => {
  await server.close()
  cleanUp()
})

it("keeps in RocksDB what it was asked", async () => {
  project.write("stored.ts", storedProgram)
  expect((await project.check("stored.ts", stricter)).errors).toEqual([])
  expect(await project.run("stored.js")).toBe("2\n")
  expect(await project.run("stored.js")).toBe("4\n")
  expect(readFileSync(join(project.folder, "data/engine"), "utf8")).toBe("rocksdb\n")
})

it("keeps in NATS what it was asked", async () => {
  project.write("nats.ts", natsProgram)
  expect((await project.check("nats.ts", domTypes)).errors).toEqual([])
  expect(await project.run("nats.js", server.url)).toBe("2\n")
  expect(await project.run("nats.js", server.url)).toBe("4\n")
})
