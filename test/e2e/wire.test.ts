/** Hostile header fields and noise on bare sockets. Framing is in test/wire. */
import { createHash } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { asAdmin, expectStatus, listMailbox, type Mailbox, openMailbox, postXml,
  send } from "./client.ts"
import { cleanUp, type Service, start } from "./process.ts"
import { head, sendRaw, smuggledInto, statusesOf } from "./raw.ts"

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

const smuggled = (): string => smuggledInto(mailbox.path)

describe("header fields", () => {
  it("refuses a header block that is too large", async () => {
    const block = head("GET / HTTP/1.1", "Host: a", `X-Long: ${"x".repeat(20_000)}`)
    expect(statusesOf(await sendRaw(service.port, [block]))).toEqual([431])
    const many = Array.from({ length: 2_000 }, (_, n) => `X-${n}: some value`)
    for (
      const pieces of [
        [head("GET / HTTP/1.1", "Host: a", ...many)],
        ["GET / HTTP/1.1\r\nHost: a\r\nX: ", "x".repeat(9_000), "x".repeat(9_000), "\r\n\r\n"]
      ]
    ) {
      const statuses = statusesOf(await sendRaw(service.port, pieces))
      expect(statuses.filter((status) => status !== 431)).toEqual([])
    }
  })

  it("refuses a path that is too long", async () => {
    const received = await sendRaw(service.port, [
      head(`GET /${"x".repeat(15_000)} HTTP/1.1`, "Host: a")
    ])
    for (const status of statusesOf(received)) expect(status).toBeGreaterThanOrEqual(400)
  })

  it.each([
    ["Content-Type", "text/plain\rX-Evil: 1"],
    ["Content-Type", "text/plain\nX-Evil: 1"],
    ["Content-Disposition", "inline; filename=\"a\rX-Evil: 1\""],
    ["Content-Disposition", "inline; filename=\"a\u0000\""],
    ["Message-Password", "0123456789abcdef\rX-Evil: 1"],
    ["Idempotency-Key", "\"a\rX-Evil: 1\""]
  ])("never gives out a line break that came in %s", async (name, value) => {
    const received = await sendRaw(service.port, [
      head("POST /content HTTP/1.1", "Host: a", "Content-Length: 1", `${name}: ${value}`) + "x"
    ])
    expect(received).not.toMatch(/[\r\n]X-Evil/i)
    const [, path] = /\r\nlocation: http:\/\/post\.test(\S+)/i.exec(received) ?? []
    if (path === undefined) return
    const served = await sendRaw(service.port, [head(`GET ${path} HTTP/1.1`, "Host: a")])
    expect(served).not.toMatch(/[\r\n]X-Evil/i)
  })

  it("never gives out a line break that came in a name or title", async () => {
    const slug = "evil%0d%0aX-Evil:%201"
    const headers = { ...asAdmin, slug }
    const named = await send(service.url, "/mailboxes", { method: "POST", headers })
    expect(named.status).toBe(422)
    const titled = "<mailbox><name>titled</name><title>a&#13;&#10;X-Evil: 1</title></mailbox>"
    const made = await postXml(service.url, "/mailboxes", titled, asAdmin)
    expect([201, 422]).toContain(made.status)
    expect(made.headers.has("x-evil")).toBe(false)
  })
})

/** Noise that is the same in every run. */
const noise = (n: number, length: number): Buffer => {
  const blocks: Array<Buffer> = []
  for (let at = 0; at * 64 < length; at += 1) {
    blocks.push(createHash("sha512").update(`${n} ${at}`).digest())
  }
  return Buffer.concat(blocks).subarray(0, length)
}

describe("noise", () => {
  it("outlives random bytes and mutated requests", async () => {
    const valid = Buffer.from(smuggled().replaceAll("smuggled", "mutation"))
    await Promise.all(Array.from({ length: 150 }, async (_, n) => {
      const random = noise(n, 64)
      const mutated = Buffer.from(valid)
      for (let change = 0; change < 3; change += 1) {
        mutated[random.readUInt16BE(change * 2) % mutated.length] = random[10 + change] ?? 0
      }
      await sendRaw(service.port, [n % 3 === 0 ? noise(n, 2_000) : mutated], 150)
    }))
    expect(service.isOver).toBe(false)
    expectStatus(await send(service.url, "/readyz"), 200)
    for (const { description } of await listMailbox(service.url, mailbox)) {
      expect(description).toHaveLength("mutation".length)
    }
  })
})
