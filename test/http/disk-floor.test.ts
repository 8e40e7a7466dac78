/** Below the floor of free disk space nothing is stored without an account (protocol §7). */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { DiskFloor, floorBytes } from "../../http/rates/disk-floor.ts"
import { makeMetricsText } from "../../http/resources/observability/prometheus-text.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`

const space = { freeBytes: 500, totalBytes: 1_000 }

let fails = false

const diskFloor = new DiskFloor({ percent: 10 }, async () => {
  if (fails) throw new Error("no such file system")
  return { ...space }
})

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable, { diskFloor })
  await service.send("POST", "/mailboxes", { basic: admin, headers: { Slug: "alice" } })
})
afterAll(() => service.close())

const setFree = async (freeBytes: number) => {
  space.freeBytes = freeBytes
  await Effect.runPromise(diskFloor.check)
}

const notification = "<notification><item><description>x</description>" +
  "<url>http://example.org/</url></item></notification>"

/** Requests that store something, by anybody. */
const writes: ReadonlyArray<readonly [method: string, path: string, body: string]> = [
  ["POST", "/content", "bytes"],
  ["POST", "/mailboxes/alice", notification],
  ["POST", "/sessions", "<answer continue=\"true\">yes</answer>"],
  ["PUT", "/sessions/{session}/name", "<answer continue=\"true\">Arthur</answer>"],
  ["POST", "/queries", "<query on=\"customers\"/>"]
]

/** The path of a new session of an anonymous client. */
const anonymousSession = async (): Promise<string> => {
  const begun = await service.send("POST", "/sessions", { body: "<answer continue=\"true\"/>" })
  expect(begun.status).toBe(201)
  return begun.header("location").slice(service.base.length)
}

describe("below the floor", () => {
  it.each(writes)("%s %s without an account is 507, and passes above it", async (...write) => {
    const [method, template, body] = write
    await setFree(100)
    const path = template.replace("/sessions/{session}", await anonymousSession())
    await setFree(99)
    const refused = await service.send(method, path, { body, accept: "application/json" })
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({ type: `${service.base}/problems/disk-low` })
    // An account, and a token that is none.
    expect((await service.send(method, path, { body, basic: admin })).status).toBeLessThan(300)
    const wrong = { body, basic: "admin:not-the-token-of-anybody" }
    expect((await service.send(method, path, wrong)).status).toBe(507)
    await setFree(100)
    expect((await service.send(method, path, { body })).status).toBeLessThan(300)
  })

  it("a receipt is refused too, and what is there is read and deleted", async () => {
    await setFree(500)
    const published = await service.send("POST", "/content", { body: "bytes", type: "text/plain" })
    const path = published.header("location").slice(service.base.length)
    const edit = /<([^>]*)>; rel="edit"/.exec(published.header("link"))?.[1] ?? ""
    await setFree(0)
    const receipt = { body: "<receipt status=\"received\"/>" }
    expect((await service.send("POST", path, receipt)).status).toBe(507)
    expect((await service.send("PUT", edit, { body: "more", type: "text/plain" })).status).toBe(507)
    expect((await service.send("GET", path)).text).toBe("bytes")
    expect((await service.send("DELETE", edit)).status).toBe(204)
    await setFree(500)
  })

  it("an admin still signs in, to free space", async () => {
    await setFree(0)
    const form = { body: "account=x&password=y", type: "application/x-www-form-urlencoded" }
    expect((await service.send("POST", "/sign-in", form)).status).not.toBe(507)
    await setFree(500)
  })

  it("a refused request is not what the next one with its Idempotency-Key repeats", async () => {
    const request = {
      body: "bytes",
      type: "text/plain",
      headers: { "Idempotency-Key": "a-key-of-enough-entropy-0123456789" }
    }
    await setFree(0)
    expect((await service.send("POST", "/content", request)).status).toBe(507)
    await setFree(500)
    expect((await service.send("POST", "/content", request)).status).toBe(202)
  })
})

it("is a share of the disk or a size, and stays while the disk cannot be read", async () => {
  expect(floorBytes({ percent: 10 }, { freeBytes: 0, totalBytes: 1_001 })).toBe(101)
  expect(floorBytes({ bytes: 7 }, { freeBytes: 0, totalBytes: 1_001 })).toBe(7)
  await setFree(10)
  fails = true
  await Effect.runPromise(diskFloor.check)
  expect(diskFloor.isBelow).toBe(true)
  fails = false
  await setFree(500)
  expect(diskFloor.isBelow).toBe(false)
})

it("is in the metrics", () => {
  const text = makeMetricsText({ ...service.service, nowMs: Date.now })()
  expect(text).toContain("restante_disk_free_bytes 500\n")
  expect(text).toContain("restante_disk_floor_bytes 100\n")
})
