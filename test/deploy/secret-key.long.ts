/** The key of stored secrets of a node: where its file is, who may read it, what it must fit. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync,
  writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { expectStatus, openMailbox, send } from "../e2e/client.ts"
import { command, keyFile, launch, start, temporaryFolder } from "../e2e/process.ts"
import { startServer } from "../runtime/nats/servers.ts"
import { endCommands, run } from "./cli-harness.ts"

afterAll(endCommands)

const configuration = 78

const aKey = (fill: string): string => Buffer.alloc(32, fill).toString("base64")

/** Starts with these settings, and expects the refusal. */
const isRefused = async (
  dataDir: string,
  env: Readonly<Record<string, string>>,
  text: string | RegExp
): Promise<void> => {
  const service = launch({ dataDir, env })
  expect((await service.end()).code).toBe(configuration)
  expect(service.output).toMatch(text)
  expect(service.output).not.toContain(aKey("one"))
}

const served = async (
  dataDir: string,
  env: Readonly<Record<string, string>> = {}
): Promise<void> => {
  const service = await start({ dataDir, env })
  expectStatus(await send(service.url, "/"), 200)
  expect((await service.stop()).code).toBe(0)
}

describe("a first start", () => {
  it("makes a key for its owner alone, which the next start uses", async () => {
    const dataDir = join(temporaryFolder(), "data")
    const file = join(dataDir, "secret-key")
    await served(dataDir)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const text = readFileSync(file, "utf8")
    await served(dataDir)
    expect(readFileSync(file, "utf8")).toBe(text)
  })

  it("uses SECRET_KEY_FILE, and makes no other", async () => {
    const dataDir = temporaryFolder()
    await served(dataDir, { SECRET_KEY_FILE: keyFile(aKey("one")) })
    expect(existsSync(join(dataDir, "secret-key"))).toBe(false)
  })

  it("does not make the file that SECRET_KEY_FILE names", () =>
    isRefused(temporaryFolder(), { SECRET_KEY_FILE: "/nonexistent/key" }, "does not exist"))

  it("after `doctor` makes the key", async () => {
    const dataDir = temporaryFolder()
    const examined = await command(["doctor"], { DATA_DIR: dataDir })
    expect(examined.output).toContain("none yet in")
    await served(dataDir)
  })
})

describe("a store", () => {
  it("is not served without its key, and not with another one", async () => {
    const dataDir = temporaryFolder()
    const file = join(dataDir, "secret-key")
    const copy = join(temporaryFolder(), "copy")
    await served(dataDir)
    copyFileSync(file, copy)
    chmodSync(copy, 0o600)
    rmSync(file)
    await isRefused(dataDir, {}, `${file} does not exist, and has the key of stored secrets of`)
    const other = { SECRET_KEY_FILE: keyFile(aKey("one")) }
    await isRefused(dataDir, other, /the store has secrets under the key \S{8}, and this node has/)
    const found = await command(["doctor"], { DATA_DIR: dataDir, ...other })
    expect(found.output).toContain("FAIL  store")
    expect(found.output).toContain("the store has secrets under the key")
    expect(found.code).toBe(1)
    await served(dataDir, { SECRET_KEY_FILE: copy })
  })

  it("gets a new key beside the old one, which the service's key then does not need", async () => {
    const dataDir = temporaryFolder()
    const [one, two] = [aKey("one"), aKey("two")]
    await served(dataDir, { SECRET_KEY_FILE: keyFile(one) })
    await isRefused(dataDir, { SECRET_KEY_FILE: keyFile(two) }, "the store has secrets under")
    await served(dataDir, { SECRET_KEY_FILE: keyFile(two, one) })
    await served(dataDir, { SECRET_KEY_FILE: keyFile(two) })
  })
})

describe("a key file", () => {
  it.each([0o640, 0o604, 0o644])("of mode %i is refused", async (mode) => {
    const file = keyFile(aKey("one"))
    chmodSync(file, mode)
    const advice = `others could read the key of stored secrets: chmod 600 ${file}`
    await isRefused(temporaryFolder(), { SECRET_KEY_FILE: file }, advice)
  })

  it("that is none is refused", async () => {
    const folder = join(temporaryFolder(), "folder")
    mkdirSync(folder)
    await isRefused(temporaryFolder(), { SECRET_KEY_FILE: folder }, "is not a file")
    const short = keyFile("too short")
    await isRefused(temporaryFolder(), { SECRET_KEY_FILE: short }, "does not have 32 bytes")
    const large = keyFile(aKey("one"))
    writeFileSync(large, `# ${"x".repeat(20_000)}\n`)
    await isRefused(temporaryFolder(), { SECRET_KEY_FILE: large }, "is too large")
  })
})

describe("a node of a cluster", () => {
  it("makes a key with NATS on this machine, and joins no cluster with another", async () => {
    const nats = await startServer()
    try {
      const env = { NATS_URL: nats.url, CLUSTER_BUCKETS: "1", SECRET_KEY_FILE: "" }
      const folders = [temporaryFolder(), temporaryFolder()] as const
      const first = await start({ dataDir: folders[0], env })
      expect(existsSync(join(folders[0], "secret-key"))).toBe(true)
      const differs =
        /the key of stored secrets of this node \(\S{8}\) is not that of the cluster \(\S{8}\)/
      await isRefused(folders[1], env, differs)
      await isRefused(folders[1], env, "SECRET_KEY_FILE to a copy of the file that the other nodes")
      // The first node's file, as the message advises.
      const copy = { ...env, SECRET_KEY_FILE: join(folders[0], "secret-key") }
      const second = await start({ dataDir: folders[1], env: copy })
      for (const node of [second, first]) expect((await node.stop()).code).toBe(0)
    } finally {
      await nats.close()
    }
  })

  it("does not start without SECRET_KEY_FILE, whatever its folder has", async () => {
    const dataDir = temporaryFolder()
    writeFileSync(join(dataDir, "secret-key"), `${aKey("one")}\n`, { mode: 0o600 })
    await isRefused(
      dataDir,
      { NATS_URL: "nats://192.0.2.1", NATS_INSECURE: "1", SECRET_KEY_FILE: "" },
      "SECRET_KEY_FILE is not set, and the nodes of a cluster share one key"
    )
  })

  it("logs a connection to NATS that only NATS_INSECURE lets it make", async () => {
    const env = { NATS_URL: "nats://192.0.2.1", NATS_INSECURE: "1", PORT: "0" }
    const { stderr } = await run(["serve"], { DATA_DIR: temporaryFolder(), ...env }).ended
    expect(stderr).toContain(
      "NATS_INSECURE=1: NATS at nats://192.0.2.1 is without TLS and without credentials"
    )
  })
})

it("keeps the service's key out of the store in plain form", async () => {
  const dataDir = temporaryFolder()
  const service = await start({ dataDir })
  await openMailbox(service.url, "here")
  expect((await service.stop()).code).toBe(0)
  const archive = join(temporaryFolder(), "archive")
  expect((await command(["backup", archive, "--plain"], { DATA_DIR: dataDir })).code).toBe(0)
  const text = readFileSync(archive, "utf8")
  expect(text).toMatch(/"table":"service","record":"key","value":"s2\.[A-Za-z0-9_-]{8}\./)
})
