/** The built `restante audit`: lists the log, and finds an entry that was changed in the store. */
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openDatabase } from "../../runtime/embedded/engine/index.ts"
import { adminToken, type Service, start } from "../e2e/process.ts"
import { endCommands, type Environment, type Ran, run } from "./cli-harness.ts"

let service: Service
beforeAll(async () => {
  service = await start({ env: { STORAGE_ENGINE: "leveldb" } })
})
afterAll(endCommands)

const restante = (args: ReadonlyArray<string>, env: Environment = {}): Promise<Ran> =>
  run(args, { BASE_URL: service.url, ADMIN_TOKEN: adminToken, ...env }).ended

const stored = (): Promise<Ran> =>
  run(["audit", "verify", "--stored"], {
    DATA_DIR: service.dataDir,
    STORAGE_ENGINE: "leveldb"
  }).ended

/** Exchanges the account in one stored entry; returns how many entries there are. */
const forge = async (number: number): Promise<number> => {
  const database = await openDatabase(service.dataDir, "leveldb", false)
  const span = { gt: "log/", lt: "log0", limit: 10_000 }
  const slice = await database.query(span, false, true, 10_000)
  const rows = "rows" in slice ? slice.rows : slice
  const entries = rows.flatMap((value, at) =>
    at % 2 === 1 && value.includes("\"previous\"") ? [[rows[at - 1] ?? "", value] as const] : []
  )
  const [key, value] = entries[number - 1] ?? ["", ""]
  expect(value).toContain("\"account\":\"admin\"")
  await database.write([{
    type: "put",
    key: Buffer.from(key),
    value: Buffer.from(value.replace("\"account\":\"admin\"", "\"account\":\"mallory\""))
  }])
  await database.close()
  return entries.length
}

describe("restante audit", () => {
  let last: string
  it("lists what was done, and finds the chain whole", async () => {
    for (const name of ["alice", "bob"]) {
      expect((await restante(["account", "add", name])).status).toBe(0)
    }
    const listed = await restante(["audit", "list", "--action", "account.create", "--limit", "1"])
    expect(listed.stdout).toMatch(/admin +127\.0\.0\.1 +account\.create +\/accounts\/bob +done/)
    const json = await restante(["audit", "list", "--account", "admin", "--json"])
    const entries = json.stdout.trimEnd().split("\n").map((line) => JSON.parse(line))
    expect(entries.map(({ target }) => target)).toEqual(["/accounts/bob", "/accounts/alice"])
    const { status, stdout } = await restante(["audit", "verify"])
    expect([status, stdout]).toEqual([0, expect.stringContaining("entries: 5\n")])
    last = /^last: (\S+)$/m.exec(stdout)?.[1] ?? ""
    expect((await restante(["audit", "verify", "--noted", last])).status).toBe(0)
  })

  it("finds a chain that is another one than was noted", async () => {
    const [number, hash = ""] = last.split(":")
    const other = `${number}:${hash.startsWith("A") ? "B" : "A"}${hash.slice(1)}`
    const ran = await restante(["audit", "verify", "--noted", other])
    expect([ran.status, ran.stderr]).toEqual([1, expect.stringContaining("was noted")])
    const later = await restante(["audit", "verify", "--noted", `9${last}`])
    expect([later.status, later.stderr]).toEqual([1, expect.stringContaining("is missing")])
    expect((await restante(["audit", "verify", "--noted", "9"])).status).toBe(2)
  })

  it("finds an entry that was changed in the store, stopped or running", async () => {
    await service.stop()
    const whole = await stored()
    expect([whole.status, whole.stdout]).toEqual([0, expect.stringContaining(`last: ${last}\n`)])
    expect(await forge(3)).toBe(5)
    const found = /entry 3 of the audit log is not as it was recorded, entry 4 has another hash/
    const stopped = await stored()
    expect([stopped.status, stopped.stderr]).toEqual([1, expect.stringMatching(found)])
    const { dataDir } = service
    service = await start({ dataDir, env: { STORAGE_ENGINE: "leveldb" } })
    const running = await restante(["audit", "verify"])
    expect([running.status, running.stderr]).toEqual([1, expect.stringMatching(found)])
    await service.stop()
    expect(
      (await run(["audit", "verify", "--stored"], {
        DATA_DIR: join(dataDir, "nothing")
      }).ended).status
    ).toBeGreaterThan(0)
  })
})
