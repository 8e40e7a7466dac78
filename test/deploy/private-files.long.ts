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
  writeFileSync(file, "", { mode: 0o600 })
  for (const one of [dataDir, join(dataDir, "none"), join(file, "below")]) {
    expect(openToOthers(one)).toBeUndefined()
  }
})

it("is said of files that others may read, at the start, with the first names", async () => {
  const dataDir = join(temporaryFolder(), "data")
  mkdirSync(dataDir, { mode: 0o700 })
  const make = (name: string, mode: number): void => {
    writeFileSync(join(dataDir, name), "")
    chmodSync(join(dataDir, name), mode)
  }
  make("notes", 0o644)
  make("own", 0o600)
  const first = await start({ dataDir })
  expect((await first.stop()).code).toBe(0)
  const advice = `: chmod -R go= ${dataDir}`
  expect(first.output).toContain(`in ${dataDir}, others could read notes (mode 644)${advice}`)
  expect(first.output.match(/others could read/g)).toHaveLength(1)
  for (const name of ["a", "b", "c", "d", "e"]) make(name, 0o640)
  const five = "a (mode 640), b (mode 640), c (mode 640), d (mode 640), e (mode 640), 1 more"
  expect(openToOthers(dataDir)).toBe(`in ${dataDir}, others could read ${five}${advice}`)
  chmodSync(dataDir, 0o711)
  expect(openToOthers(dataDir)).toMatch(/ has mode 711, .+: chmod 700 .+; in .+ 1 more: chmod -R/)
})

it("is said by `doctor`, of a folder and of a file in it", async () => {
  const dataDir = join(temporaryFolder(), "shared")
  mkdirSync(dataDir)
  const found = async (): Promise<unknown> => {
    const { stdout } = await run(["doctor", "--json"], { DATA_DIR: dataDir }).ended
    const findings: ReadonlyArray<{ readonly name: string }> = JSON.parse(stdout)
    return findings.find(({ name }) => name === "data folder")
  }
  const warned = (advice: string) => ({
    name: "data folder",
    state: "warn",
    found: dataDir,
    advice
  })
  chmodSync(dataDir, 0o755)
  const ofFolder =
    `${dataDir} has mode 755, and others could read its secrets: chmod 700 ${dataDir}`
  expect(await found()).toEqual(warned(ofFolder))
  chmodSync(dataDir, 0o700)
  expect(await found()).toMatchObject({ state: "ok" })
  writeFileSync(join(dataDir, "notes"), "")
  chmodSync(join(dataDir, "notes"), 0o644)
  const ofFile = `in ${dataDir}, others could read notes (mode 644): chmod -R go= ${dataDir}`
  expect(await found()).toEqual(warned(ofFile))
})
