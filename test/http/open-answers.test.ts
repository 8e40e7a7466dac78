/** Event streams and long polls: so many for each network, and for all of them. */
import { array, assert, constantFrom, property, record } from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Clients } from "../../http/rates/client-address.ts"
import { OpenAnswers } from "../../http/rates/open-answers.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import { type Mailboxes, owner, startMailboxes, timeOf } from "./mailbox-harness.ts"
import { stream } from "./streams.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes(undefined, {
    trustedProxies: ["127.0.0.0/8"],
    openAnswers: { totalMax: 3, perNetworkMax: 2 }
  })
})

afterAll(() => service.close())

const from = (address: string) => ({ "x-forwarded-for": address })

describe("event streams and long polls", () => {
  it("beyond the limit are refused, by its name, until one is closed", async () => {
    const opened = await service.open("open")
    // Each node counts its own.
    const href = `${service.nodes[0] ?? ""}${new URL(opened.href).pathname}`
    const ask = (address: string, headers: Readonly<Record<string, string>>) =>
      service.send("GET", href, { basic: owner, headers: { ...from(address), ...headers } })
    const listen = (address: string) => ask(address, { accept: "text/event-stream" })
    const first = await stream(href, owner, from("192.0.2.1"))
    const second = await stream(href, owner, from("192.0.2.2"))
    const third = await listen("192.0.2.3")
    expect(third.status).toBe(429)
    expect(third.child("detail")).toContain("the clients of 192.0.2.0/24 have 2 event streams")
    expect(third.text).toContain("open-answers")
    expect(third.header("retry-after")).toBe("10")
    const since = timeOf(await service.send("GET", href, { basic: owner }))
    const poll = await service.send("GET", `${href}?since=${since}`, {
      basic: owner,
      headers: { ...from("192.0.2.3"), prefer: "wait=60" }
    })
    expect(poll.status).toBe(429)
    const other = await stream(href, owner, from("198.51.100.1"))
    const full = await listen("203.0.113.1")
    expect([full.status, full.header("retry-after")]).toEqual([503, "10"])
    expect(full.child("detail")).toContain("the limit of the service")
    for (const one of [first, second, other]) one.close()
    await expect.poll(async () => {
      const again = await stream(href, owner, from("192.0.2.3"))
      again.close()
      return again.response.status
    }).toBe(200)
  })

  it("never exceed a limit, and leave nothing behind", () => {
    const step = record({
      does: constantFrom("take", "release"),
      address: constantFrom("192.0.2.1", "192.0.2.9", "198.51.100.1", "203.0.113.1"),
      n: constantFrom(0, 1, 2, 3)
    })
    assert(property(array(step), (steps) => {
      const answers = new OpenAnswers(new Clients([]), { totalMax: 3, perNetworkMax: 2 })
      const open: Array<() => void> = []
      for (const { address, does, n } of steps) {
        if (does === "release") open[n]?.()
        else {
          const place = answers.take({ headers: new RequestHeaders([]), remoteAddress: address })
          if (place._tag === "Taken") open.push(place.release)
        }
        expect(answers.size).toBeLessThanOrEqual(3)
      }
      for (const release of open) release()
      expect(answers.size).toBe(0)
    }))
  })
})
