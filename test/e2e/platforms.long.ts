/**
 * The built service where a native module cannot be loaded. A preloaded script throws the error of
 * the loader, and records which native modules the process tries to load.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { blocksOf } from "../docs/pages.ts"
import { patternOf } from "../docs/transcript.ts"
import { adminToken, cleanUp, command, folderWithKeyOf, launch, start,
  temporaryFolder } from "./process.ts"

afterAll(cleanUp)

/** Messages of the loaders on other platforms. */
const failures = {
  glibc: "/lib/x86_64-linux-gnu/libm.so.6: version `GLIBC_2.38' not found (required by uws.node)",
  musl: "Error loading shared library ld-linux-x86-64.so.2: No such file or directory",
  format: "rocksdb.node: cannot open shared object file: wrong ELF class"
} as const

interface Lacking {
  /** Part of the path of the module that cannot be loaded. */
  readonly module: string
  readonly message: string
  /** Another version of Node's module interface. */
  readonly modules?: string
}

/** The environment of a process without some module, and the paths that it tried to load. */
const lacking = ({ module, modules, message }: Lacking) => {
  const folder = temporaryFolder()
  const tried = join(folder, "tried")
  writeFileSync(
    join(folder, "preload.cjs"),
    `const { appendFileSync } = require("node:fs")
const dlopen = process.dlopen
process.dlopen = function (target, path, ...rest) {
  appendFileSync(${JSON.stringify(tried)}, path + "\\n")
  if (path.includes(${JSON.stringify(module)})) throw new Error(${JSON.stringify(message)})
  return dlopen.call(process, target, path, ...rest)
}
const modules = ${JSON.stringify(modules ?? null)}
if (modules !== null) {
  Object.defineProperty(process, "versions", { value: { ...process.versions, modules } })
}
`
  )
  return {
    env: { NODE_OPTIONS: `--require ${join(folder, "preload.cjs")}` },
    tried: () => existsSync(tried) ? readFileSync(tried, "utf8") : ""
  }
}

const noRocksdb = () => lacking({ module: "rocksdb", message: failures.format })

/** Starts a process that must end; returns its exit code and output. */
const refused = async (env: Readonly<Record<string, string>>, dataDir = temporaryFolder()) => {
  const service = launch({ dataDir, env })
  const { code } = await service.end()
  return { code, output: service.output, dataDir }
}

describe("where uWebSockets.js does not run", () => {
  it.each<readonly [string, Lacking]>([
    ["glibc is too old", { module: "@uwsjs", message: failures.glibc }],
    ["musl takes its place", { module: "@uwsjs", message: failures.musl }],
    ["Node is another", { module: "nothing", message: "", modules: "999" }]
  ])("reports what to do, and creates no store: %s", async (_, what) => {
    const { code, dataDir, output } = await refused(lacking(what).env, join(temporaryFolder(), "d"))
    expect(code).toBe(78)
    expect(output).toContain(`uWebSockets.js cannot be loaded by Node ${process.version}`)
    expect(output).toContain(
      what.message === "" ? "there is no binary for modules of version 999" : what.message
    )
    expect(output).toMatch(/It needs Node 20, 22, 24 or 26 and, on Linux, glibc/)
    expect(output).toContain("docs/platforms.md")
    expect(output).not.toMatch(/^ +at /m)
    // The failed start must not generate a token, which nobody would see.
    expect(existsSync(dataDir)).toBe(false)
  })
})

it("writes what docs/platforms.md shows", async () => {
  const [shown] = blocksOf("docs/platforms.md").filter(({ language }) => language === "text")
  const text = shown?.text.trimEnd() ?? ""
  const [, message = ""] = /: Error: (.* \(required by .*\))$/m.exec(text) ?? []
  expect(message).toContain("GLIBC")
  const { output } = await refused(lacking({ module: "@uwsjs", message }).env)
  const asHere = text.replace(/Node v24\.\S+ on linux x64/, () => {
    const { arch, platform, version } = process
    return `Node ${version} on ${platform} ${arch}`
  })
  const lines = output.split("\n").filter((line) => line.startsWith("restante: "))
  expect(lines.join("\n")).toMatch(patternOf(asHere))
})

describe("where RocksDB does not run", () => {
  it("selects LevelDB, stays with it, and reports it", async () => {
    const platform = noRocksdb()
    const service = await start({ env: platform.env })
    const { dataDir } = service
    expect(service.output).toContain(`LevelDB store in ${dataDir}`)
    expect(platform.tried()).toContain("rocksdb")
    expect(readFileSync(join(dataDir, "engine"), "utf8")).toBe("leveldb\n")
    const made = await fetch(`${service.url}/accounts`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "alice" })
    })
    expect(made.status, await made.text()).toBe(201)
    await service.kill()
    // Where RocksDB is available, the folder stays as it is, and RocksDB is not loaded.
    const elsewhere = lacking({ module: "nothing", message: "" })
    const again = await start({ dataDir, env: elsewhere.env })
    expect(again.output).toContain(`LevelDB store in ${dataDir}`)
    const accounts = await fetch(`${again.url}/accounts`, {
      headers: { authorization: `Bearer ${adminToken}`, accept: "application/json" }
    })
    expect(await accounts.text()).toContain("alice")
    await again.stop()
    expect(elsewhere.tried()).toContain("classic-level")
    expect(elsewhere.tried()).not.toContain("rocksdb")
    const checked = await command(["check", "--data-dir", dataDir])
    expect(checked).toMatchObject({ code: 0 })
    expect(checked.output).toContain("store: leveldb\n")
  })

  it("refuses the setting rocksdb, and a RocksDB folder", async () => {
    const platform = noRocksdb()
    const insisted = await refused({ ...platform.env, STORAGE_ENGINE: "rocksdb" })
    expect(insisted.code).toBe(78)
    expect(insisted.output).toMatch(
      /STORAGE_ENGINE is rocksdb, and Node .* cannot load RocksDB's native module/
    )
    expect(insisted.output).toContain(failures.format)
    expect(insisted.output).toContain("set STORAGE_ENGINE=leveldb")
    const service = await start({ env: { STORAGE_ENGINE: "rocksdb" } })
    expect(service.output).toContain(`RocksDB store in ${service.dataDir}`)
    await service.stop()
    const found = await refused(platform.env, service.dataDir)
    expect(found.code).toBe(78)
    expect(found.output).toContain("STORAGE_ENGINE=rocksdb restante backup <file>")
    const checked = await command(["check", "--data-dir", service.dataDir], platform.env)
    expect(checked.code).toBe(78)
  })
})

it("refuses a folder of the other database, and migrates it as its message describes", async () => {
  const service = await start({ env: { STORAGE_ENGINE: "leveldb" } })
  const { dataDir } = service
  await service.stop()
  const differs = await refused({ STORAGE_ENGINE: "rocksdb" }, dataDir)
  expect(differs.code).toBe(78)
  expect(differs.output).toContain(
    `${dataDir} is a leveldb database, and STORAGE_ENGINE is rocksdb`
  )
  expect(differs.output).toContain("STORAGE_ENGINE=leveldb restante backup <file>")
  const [file, fresh] = [join(temporaryFolder(), "file"), folderWithKeyOf(dataDir)]
  const from = { STORAGE_ENGINE: "leveldb", DATA_DIR: dataDir }
  expect(await command(["backup", file], from)).toMatchObject({ code: 0 })
  const to = ["restore", file, "--data-dir", fresh]
  expect(await command(to, { STORAGE_ENGINE: "rocksdb" })).toMatchObject({ code: 0 })
  const moved = await start({ dataDir: fresh })
  expect(moved.output).toContain(`RocksDB store in ${fresh}`)
  // The archive contains the account admin, so no new token was generated.
  const accounts = await fetch(`${moved.url}/accounts`, {
    headers: { authorization: `Bearer ${adminToken}` }
  })
  expect(accounts.status).toBe(200)
  await moved.stop()
})
