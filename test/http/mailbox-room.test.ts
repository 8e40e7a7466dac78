/** How much clients without an account may deposit in one mailbox (protocol §7). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Mailboxes, notification, owner, startMailboxes } from "./mailbox-harness.ts"
import { eventually } from "./receiver.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes(undefined, { mailboxAnonymousBytesMax: 4_000 })
})
afterAll(() => service.close())

const send: Mailboxes["send"] = (...request) => service.send(...request)

/** Strangers deposit until one is refused; returns how many were not, and the refusal. */
const fill = async (href: string, deposited = 0) => {
  for (let n = deposited;; n++) {
    const answer = await service.deposit(href, `word ${n} ${"x".repeat(300)}`)
    if (answer.status !== 202) return { deposited: n, refused: answer }
    expect(n).toBeLessThan(100)
  }
}

describe("a mailbox that strangers have filled", () => {
  it("refuses theirs alone, and says whose limit it is and what to do", async () => {
    const { href } = await service.open("filled")
    const { deposited, refused } = await fill(href)
    expect(deposited).toBeGreaterThan(3)
    expect(refused.status).toBe(507)
    for (
      const part of ["quota-exceeded", "MAILBOX_ANONYMOUS_BYTES_MAX", "of 4000 bytes", "account"]
    ) expect(refused.text).toContain(part)
    const body = notification("of an account")
    expect((await send("POST", href, { basic: service.bob, body })).status).toBe(202)
    const other = await service.open("not-filled")
    expect((await service.deposit(other.href, "elsewhere")).status).toBe(202)
  })

  it("counts the content that deposits bring", async () => {
    const { href } = await service.open("with-content")
    const body = (n: number) =>
      `<notification><item><description>${n}</description><url/>` +
      `<content type="text/plain">${"x".repeat(2_000)}</content></item></notification>`
    expect((await send("POST", href, { body: body(1) })).status).toBe(202)
    const refused = await send("POST", href, { body: body(2) })
    expect([refused.status, refused.text.includes("MAILBOX_ANONYMOUS_BYTES_MAX")])
      .toEqual([507, true])
    expect((await send("GET", href, { basic: owner })).status).toBe(200)
    await eventually("there is room", async () => {
      const { status } = await send("POST", href, { body: body(2) })
      return status === 202 ? status : undefined
    })
  })

  it("has room again when its owner has read it", async () => {
    const { href } = await service.open("read-again")
    const { deposited } = await fill(href)
    expect((await send("GET", href, { basic: owner })).status).toBe(200)
    const more = await eventually("there is room", async () => {
      const { deposited: all } = await fill(href, deposited)
      return all > deposited ? all : undefined
    })
    expect(more).toBe(2 * deposited)
  })

  it("has room again when its owner has removed what came, without a read", async () => {
    const { href } = await service.open("removed-again")
    const hrefs: Array<string> = []
    for (let n = 0;; n++) {
      const answer = await service.deposit(href, `word ${n} ${"x".repeat(300)}`)
      if (answer.status !== 202) break
      hrefs.push(answer.header("location"))
    }
    for (const one of hrefs) {
      expect((await send("DELETE", one, { basic: owner })).status).toBe(204)
    }
    expect((await service.deposit(href, "room")).status).toBe(202)
  })
})
