/** Below the floor of free disk space nothing is stored without an account (protocol §7). */
import { Effect } from "effect"
import { connect, type Socket } from "node:net"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { idempotencyKind } from "../../actors/index.ts"
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

/** A publication whose body is sent after the service has asked for it. */
class SlowUpload {
  private readonly socket: Socket
  private readonly statuses: AsyncIterator<string>

  constructor(node: string, credentials: string) {
    const { host, hostname, port } = new URL(node)
    this.socket = connect(Number(port), hostname)
    this.statuses = this.read()
    this.send(
      `POST /content HTTP/1.1\r\nHost: ${host}\r\n${credentials}Content-Type: text/plain\r\n` +
        "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    )
    onTestFinished(() => void this.socket.destroy())
  }

  send(text: string): void {
    this.socket.write(text)
  }

  /** The status of the next answer. */
  get next(): Promise<string> {
    return this.statuses.next().then(({ value }) => String(value))
  }

  private async *read(): AsyncGenerator<string> {
    let text = ""
    for await (const data of this.socket) {
      text += String(data)
      for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
        const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1]
        if (status !== undefined) yield status
        text = text.slice(end + 4)
      }
    }
  }
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

  it("a body that is being received is cut, but not that of an account", async () => {
    const statuses: Array<string> = []
    for (const credentials of ["", `Authorization: Basic ${btoa(admin)}\r\n`]) {
      await setFree(500)
      const upload = new SlowUpload(service.nodes[0] ?? service.base, credentials)
      statuses.push(await upload.next)
      await setFree(0)
      upload.send("4\r\nmore\r\n0\r\n\r\n")
      statuses.push(await upload.next)
    }
    expect(statuses).toEqual(["100", "507", "100", "202"])
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

  it("the key of an operation that stores nothing else is not stored", async () => {
    const stored: Array<string> = []
    for (const { system } of service.services) {
      const ask = system.ask
      const spied = vi.spyOn(system, "ask").mockImplementation((to, message) =>
        Effect.suspend(() => {
          if (to.kind === idempotencyKind) stored.push(message._tag)
          return ask(to, message)
        })
      )
      onTestFinished(() => spied.mockRestore())
    }
    await setFree(0)
    const headers = { "Idempotency-Key": "a-key-of-enough-entropy-0123456789" }
    const form = { headers, type: "application/x-www-form-urlencoded" }
    for (let at = 0; at < 2; at++) {
      expect((await service.send("POST", "/sign-out", { ...form, body: "" })).status).toBe(303)
    }
    const signIn = `account=admin&token=${adminToken}`
    expect((await service.send("POST", "/sign-in", { ...form, body: signIn })).status).toBe(303)
    expect(stored).toEqual([])
    await setFree(500)
    // It sees the key of another request.
    const publication = { headers, body: "bytes", type: "text/plain" }
    expect((await service.send("POST", "/content", publication)).status).toBe(202)
    expect(stored).toEqual(["Begin", "Complete"])
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
