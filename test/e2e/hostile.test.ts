/** Bad input: the service refuses it with a clear 4xx, stores nothing, and frees the memory. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, asAdmin, basic, expectStatus, listMailbox, type Mailbox, metricValue,
  notification, openMailbox, parseXml, pathOf, postXml, putXml, send } from "./client.ts"
import { hostileDocuments } from "./documents.ts"
import { blobFiles, cleanUp, eventually, type Service, start } from "./process.ts"
import { head, openRaw, statusesOf } from "./raw.ts"

const memory = "restante_process_resident_memory_bytes"
/** Allowed growth of memory above that after a first round. */
const growthBytesMax = 96 * 1024 * 1024

let service: Service
let mailbox: Mailbox

beforeAll(async () => {
  service = await start()
  mailbox = await openMailbox(service.url, "target")
})
afterAll(async () => {
  await service.kill()
  cleanUp()
})

/** A refusal that names the fault, as a problem document. */
const expectProblem = (answer: Answer): void => {
  expect(answer.status).toBeGreaterThanOrEqual(400)
  expect(answer.status).toBeLessThan(500)
  expect(answer.headers.get("content-type")).toContain("application/problem+")
  const problem = parseXml(answer.text)
  expect(problem.children.map(({ name }) => name)).toContain("detail")
  expect(answer.text).not.toContain("root:")
  expect(answer.text).not.toMatch(/\.[jt]s:\d+/)
}

describe("documents", () => {
  it.each(hostileDocuments)("refuses $name", async ({ body, type = "application/xml" }) => {
    const headers = { "content-type": type }
    const answer = await send(service.url, mailbox.path, { method: "POST", body, headers })
    expectProblem(answer)
  })

  it("refuses them wherever a document is read", async () => {
    const begun = await postXml(service.url, "/sessions", `<answer continue="true">go</answer>`)
    const session = pathOf(begun.headers.get("location"))
    const published = await send(service.url, "/content", { method: "POST", body: "x" })
    const content = pathOf(published.headers.get("location"))
    const places = [
      ["POST", "/mailboxes"],
      ["PUT", mailbox.path],
      ["POST", "/accounts"],
      ["PUT", `${session}/name`],
      ["POST", content]
    ] as const
    for (const { body, name, type = "application/xml", wellFormed } of hostileDocuments) {
      if (wellFormed || name === "nothing" || type.endsWith("form-urlencoded")) continue
      const headers = { ...asAdmin, "content-type": type }
      for (const [method, path] of places) {
        const { status } = await send(service.url, path, { method, body, headers })
        expect(status, `${name} to ${method} ${path}`).toBeGreaterThanOrEqual(400)
        expect(status, `${name} to ${method} ${path}`).toBeLessThan(500)
      }
    }
    expectStatus(await send(service.url, `${session}/name`), 404)
  })

  it("are not stored", async () => {
    expect(await listMailbox(service.url, mailbox)).toEqual([])
    const accepted = await postXml(service.url, mailbox.path, notification("good"))
    expectStatus(accepted, 202)
    expect(await listMailbox(service.url, mailbox)).toHaveLength(1)
  })
})

it("of 4 MiB are refused before they are read completely", async () => {
  const body = notification("x".repeat(4 * 1024 * 1024))
  // The service may close the connection before a sending client reads the response.
  const answer = await postXml(service.url, mailbox.path, body).catch(() => undefined)
  if (answer !== undefined) expect(answer.status).toBe(413)
  expect(await listMailbox(service.url, mailbox)).toHaveLength(1)
})

describe("header fields and queries", () => {
  it.each([
    ["a Content-Encoding", "POST", { "content-encoding": "gzip" }, [415]],
    ["no Content-Type", "POST", { "content-type": "" }, [415]],
    ["an Accept of nothing", "GET", { accept: "image/png" }, [406]],
    ["an Accept of noise", "GET", { accept: ";;,;q=x/".repeat(200) }, [200, 400, 406]],
    ["an empty Idempotency-Key", "POST", { "idempotency-key": "" }, [400]],
    ["a long Idempotency-Key", "POST", { "idempotency-key": "k".repeat(300) }, [400]],
    ["an unreadable Authorization", "GET", { authorization: "Basic %%%" }, [401]],
    ["an unknown scheme", "GET", { authorization: "Digest x=y" }, [401]],
    ["a Prefer of noise", "GET", { prefer: "wait=-1, wait=1e9, wait=\"" }, [200, 400]]
  ])("answers %s", async (_, method, fields, statuses) => {
    const headers = { "content-type": "application/xml", ...asAdmin, ...fields }
    const sent = method === "POST" ? { body: notification("never") } : {}
    const answer = await send(service.url, mailbox.path, { method, headers, ...sent })
    expectStatus(answer, ...statuses)
  })

  it.each([
    "since=yesterday",
    "limit=-1",
    "limit=1e9",
    "limit=0",
    "since=%zz",
    `since=${"9".repeat(500)}`
  ])("refuses the query %s", async (query) => {
    const answer = await send(service.url, `${mailbox.path}?${query}`, { headers: asAdmin })
    expect(answer.status).toBe(400)
  })

  it.each([
    "/mailboxes/..%2f..%2fetc%2fpasswd",
    "/mailboxes/%00",
    "/mailboxes/%zz",
    "/mailboxes/__proto__",
    "/mailboxes/constructor",
    "/content/../../etc/passwd",
    "/content/%2e%2e%2f",
    "/sessions/a%2Fb",
    `/sessions/${"x".repeat(5_000)}`,
    `/${"a/".repeat(1_000)}`,
    "/problems/toString"
  ])("finds nothing at %s", async (path) => {
    const { status } = await send(service.url, path, { headers: asAdmin })
    expect([400, 404]).toContain(status)
  })
})

describe("ranges", () => {
  const body = "0123456789".repeat(10_000)
  it.each([
    ["bytes=abc", [200]],
    ["bytes=5-1", [200]],
    ["bytes=-0", [416]],
    ["bytes=200000-", [416]],
    ["bytes=200000-300000", [416]],
    ["bytes=99999999999999999999-", [200, 416]],
    ["items=0-1", [200]],
    ["bytes=", [200]],
    [`bytes=${Array.from({ length: 500 }, (_, n) => `${n}-${n}`).join(",")}`, [200, 206, 416]],
    ["bytes=0-0", [206]],
    ["bytes=99990-200000", [206]]
  ])("answers %s", async (range, statuses) => {
    const published = await send(service.url, "/content", { method: "POST", body })
    const path = pathOf(expectStatus(published, 202).headers.get("location"))
    const answer = expectStatus(await send(service.url, path, { headers: { range } }), ...statuses)
    if (answer.status === 200) expect(answer.text).toBe(body)
    if (answer.status === 416) expect(answer.headers.get("content-range")).toBe("bytes */100000")
    if (answer.status === 206) {
      const [, first, last] = /^bytes (\d+)-(\d+)\/100000$/.exec(
        answer.headers.get("content-range") ?? ""
      ) ?? []
      expect(answer.text).toBe(body.slice(Number(first), Number(last) + 1))
    }
  })
})

describe("bodies that break off", () => {
  it("leave nothing of aborted uploads", async () => {
    const before = blobFiles(service.dataDir).length
    const chunk = Buffer.alloc(64 * 1024, "x")
    for (let n = 0; n < 20; n += 1) {
      const { closed, received, socket } = await openRaw(service.port)
      const framing = n % 2 === 0 ? "Content-Length: 5000000" : "Transfer-Encoding: chunked"
      socket.write(head("POST /content HTTP/1.1", "Host: a", framing))
      for (let sent = 0; sent < n; sent += 1) {
        if (n % 2 === 1) socket.write("10000\r\n")
        socket.write(chunk)
        if (n % 2 === 1) socket.write("\r\n")
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (n % 3 === 0) socket.resetAndDestroy()
      else socket.destroy()
      await closed
      expect(statusesOf(received())).toEqual([])
    }
    await eventually(
      5_000,
      "no file is left",
      () => blobFiles(service.dataDir).length === before ? true : undefined
    )
  })

  it("keeps nothing of an upload that is too large", async () => {
    const small = await start({ env: { CONTENT_BYTES_MAX: "100KiB" } })
    const answer = await send(small.url, "/content", {
      method: "POST",
      body: Buffer.alloc(200 * 1024)
    })
    expect(answer.status).toBe(413)
    const chunked = new ReadableStream({
      start(controller) {
        for (let n = 0; n < 4; n += 1) controller.enqueue(new Uint8Array(50 * 1024))
        controller.close()
      }
    })
    const streaming = await fetch(`${small.url}/content`, {
      method: "POST",
      body: chunked,
      duplex: "half"
    })
    expect(streaming.status).toBe(413)
    const fits = await send(small.url, "/content", {
      method: "POST",
      body: Buffer.alloc(100 * 1024)
    })
    expectStatus(fits, 202)
    expect(blobFiles(small.dataDir)).toHaveLength(1)
    await small.kill()
  })

  it("change nothing by an incomplete document", async () => {
    const before = await listMailbox(service.url, mailbox)
    for (const [method, path] of [["POST", mailbox.path], ["PUT", mailbox.path]] as const) {
      const { closed, socket } = await openRaw(service.port)
      const { authorization } = asAdmin
      socket.write(
        head(
          `${method} ${path} HTTP/1.1`,
          "Host: a",
          "Content-Type: application/xml",
          `Authorization: ${authorization}`,
          "Content-Length: 1000"
        ) + notification("half")
      )
      await new Promise((resolve) => setTimeout(resolve, 50))
      socket.destroy()
      await closed
    }
    expect(await listMailbox(service.url, mailbox)).toEqual(before)
  })
})

describe("after all that", () => {
  it("the service responds, and frees its memory", async () => {
    const round = async (): Promise<number> => {
      for (const { body, type = "application/xml" } of hostileDocuments) {
        const headers = { "content-type": type }
        await send(service.url, mailbox.path, { method: "POST", body, headers })
      }
      return metricValue(service.url, memory)
    }
    const first = await round()
    for (let n = 0; n < 5; n += 1) await round()
    await eventually(20_000, "memory returns", async () => {
      const now = await metricValue(service.url, memory)
      return now - first < growthBytesMax ? true : undefined
    }, 500)
    expect(service.isOver).toBe(false)
    const reader = { authorization: basic("any", mailbox.password) }
    expectStatus(await send(service.url, mailbox.path, { headers: reader }), 200)
    expectStatus(await putXml(service.url, "/nowhere", "<a/>"), 404, 405)
  })
})
