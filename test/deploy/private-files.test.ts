/** What the service and its command line write is for its owner alone. */
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { openToOthers } from "../../deploy/node/private-folder.ts"
import { expectStatus, openMailbox, send } from "../e2e/client.ts"
import { cleanUp, start, temporaryFolder } from "../e2e/process.ts"
import { run } from "./cli-harness.ts"

afterAll(cleanUp)

/** Every file and folder below a folder, with it. */
const below = (folder: string): ReadonlyArray<string> => [
  folder,
  ...readdirSync(folder, { encoding: "utf8", recursive: true }).map((name) => join(folder, name))
]

const open = (paths: ReadonlyArray<string>): ReadonlyArray<string> =>
  paths.filter((path) => (statSync(path).mode & 0o077) !== 0)

it("is a new store, with its content, and an archive of it", async () => {
  const parent = temporaryFolder()
  const dataDir = join(parent, "new", "data")
  const service = await start({ dataDir })
  await openMailbox(service.url, "private")
  expectStatus(await send(service.url, "/content", { method: "POST", body: "x" }), 202)
  expect((await service.stop()).code).toBe(0)
  expect(service.output).not.toContain("others could read")
  const archive = join(parent, "archive.gz")
  expect((await run(["backup", archive], { DATA_DIR: dataDir }).ended).status).toBe(0)
  expect(below(dataDir).length).toBeGreaterThan(5)
  expect(open([...below(dataDir), archive])).toEqual([])
})

it("is said of a folder that others may read, at the start", async () => {
  const dataDir = join(temporaryFolder(), "shared")
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o755)
  const service = await start({ dataDir })
  expect((await service.stop()).code).toBe(0)
  const warning = `${dataDir} has mode 755, and others could read its secrets: chmod 700 ${dataDir}`
  expect(service.output).toContain(warning)
  expect(openToOthers(dataDir)).toBe(warning)
  chmodSync(dataDir, 0o700)
  const file = join(dataDir, "file")
  writeFileSync(file, "")
  for (const one of [dataDir, join(dataDir, "none"), join(file, "below")]) {
    expect(openToOthers(one)).toBeUndefined()
  }
})
