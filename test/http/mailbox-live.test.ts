/** Long polls and live streams of mailboxes. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Service } from "../../http/pipeline/service.ts"
import { stream as openStream } from "./streams.ts"
import { descriptions, type Mailboxes, owner, startMailboxes, timeOf } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

const stream = (href: string, headers: Record<string, string> = {}) =>
  openStream(href, owner, headers)

describe("long polls", () => {
  test("wait ends with a deposit, or empty at its end, or at once when there is some", async () => {
    const { href } = await service.open("poll")
    const wait = (seconds: number, since: string) =>
      service.send("GET", `${href}?since=${since}`, {
        basic: owner,
        headers: { prefer: `respond-async, wait=${seconds}` }
      })
    const start = timeOf(await service.send("GET", href, { basic: owner }))
    const begun = performance.now()
    const empty = await wait(1, start)
    expect(performance.now() - begun).toBeGreaterThan(900)
    expect([empty.status, descriptions(empty)]).toEqual([200, []])
    expect(empty.header("preference-applied")).toBe("wait=1")
    const waiting = wait(20, start)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await service.deposit(href, "now")
    const full = await waiting
    expect(descriptions(full)).toEqual(["now"])
    expect(descriptions(await wait(20, start))).toEqual(["now"])
    const ended = wait(20, timeOf(full))
    await new Promise((resolve) => setTimeout(resolve, 100))
    await service.send("DELETE", href, { basic: owner })
    expect((await ended).status).toBe(410)
  })
})

describe("live streams", () => {
  test("each notification is an event with its cursor; it resumes; gone ends it", async () => {
    const { href } = await service.open("live")
    await service.deposit(href, "one")
    const live = await stream(href)
    expect(live.response.headers.get("content-type")).toContain("text/event-stream")
    expect(live.response.headers.get("link")).toContain("rel=\"mailbox\"")
    const first = await live.next()
    expect(first?.event).toBe("notification")
    expect(first?.data).toMatch(/^<notification href="[^"]+" received="[^"]+"><item>/)
    await service.deposit(href, "two")
    const second = await live.next()
    expect(second?.data).toContain("two")
    expect((second?.id ?? "") > (first?.id ?? "")).toBe(true)
    live.close()
    await service.deposit(href, "three")
    const resumed = await stream(href, { "last-event-id": second?.id ?? "" })
    expect((await resumed.next())?.data).toContain("three")
    await service.send("DELETE", href, { basic: owner })
    expect((await resumed.next())?.event).toBe("gone")
    expect(await resumed.next()).toBeUndefined()
    const bad = await service.send("GET", href, { basic: owner, accept: "text/event-stream" })
    expect(bad.status).toBe(410)
  })

  test("1,500 notifications and 200 more meanwhile, each once and in order", async () => {
    const { href } = await service.open("many")
    for (let from = 0; from < 1500; from += 50) {
      await Promise.all(
        Array.from(
          { length: 50 },
          (_, at) => service.deposit(href, `m${from + at} ${"x".repeat(2000)}`)
        )
      )
    }
    const live = await stream(href)
    const cursors: Array<string> = []
    const seen = new Set<string>()
    const adding = (async () => {
      for (let i = 0; i < 200; i++) await service.deposit(href, `late${i}`)
    })()
    while (cursors.length < 1700) {
      const event = await live.next()
      if (event === undefined) break
      cursors.push(event.id)
      seen.add(/href="([^"]+)"/.exec(event.data)?.[1] ?? "")
    }
    await adding
    expect([cursors.length, seen.size]).toEqual([1700, 1700])
    expect([...cursors].sort()).toEqual(cursors)
    live.close()
  })

  test("no rights, no stream; other secrets end it; HEAD", async () => {
    const { href, shared } = await service.open("closed")
    const accept = "text/event-stream"
    expect((await service.send("GET", href, { accept })).status).toBe(401)
    const head = await service.send("HEAD", href, { accept, basic: owner })
    expect([head.status, head.header("content-type")]).toEqual([200, accept])
    expect([head.header("cache-control"), head.headers.get("content-length")])
      .toEqual(["no-store", null])
    const live = await stream(shared, { authorization: "" })
    expect(live.response.status).toBe(200)
    await service.send("POST", `${href}/password`, { basic: owner })
    expect(await live.next()).toBeUndefined()
  })

  test("a reader that pauses gets it all; one event may be as large as a document", async () => {
    const { href } = await service.open("slow")
    for (let i = 0; i < 30; i++) await service.deposit(href, `s${i} ${"x".repeat(240_000)}`)
    const live = await stream(href)
    await new Promise((resolve) => setTimeout(resolve, 500))
    await service.deposit(href, "last")
    for (let i = 0; i < 30; i++) expect((await live.next())?.data).toContain(`s${i} x`)
    expect((await live.next())?.data).toContain("last")
    live.close()
  })

  test("for a reader that stalls nothing is read ahead, and it gets all", async () => {
    const reads: Array<number> = []
    const own = await startMailboxes((one) => {
      const system = Object.create(one.system) as Service["system"]
      const read: Service["system"]["read"] = (...query) =>
        Effect.tap(
          one.system.read(...query),
          (items) => Effect.sync(() => reads.push(items.length))
        )
      return { ...one, system: Object.assign(system, { read }) }
    })
    const { href } = await own.open("stalled")
    // More than the buffers of the sockets take.
    for (let i = 0; i < 60; i++) await own.deposit(href, `s${i} ${"x".repeat(240_000)}`)
    reads.length = 0
    const live = await stream(href)
    await expect.poll(() => reads.length).toBeGreaterThan(0)
    let before = -1
    await expect.poll(() => {
      const isStalled = reads.length === before
      before = reads.length
      return isStalled
    }, { interval: 500, timeout: 20_000 }).toBe(true)
    expect(reads.length).toBeLessThan(60)
    for (let i = 0; i < 60; i++) expect((await live.next())?.data).toContain(`s${i} x`)
    expect(Math.max(...reads)).toBe(1)
    live.close()
    await own.close()
  })

  test("a drain ends streams and waits at once", async () => {
    const own = await startMailboxes()
    const { shared } = await own.open("draining")
    const live = await stream(shared)
    const waiting = own.send("GET", shared, { headers: { prefer: "wait=50" } })
    await new Promise((resolve) => setTimeout(resolve, 100))
    const closing = own.close()
    expect(descriptions(await waiting)).toEqual([])
    expect(await live.next()).toBeUndefined()
    await closing
  })
})
