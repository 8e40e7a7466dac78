/** Long polls and live streams of mailboxes. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { textOf } from "../../http/formats/xml/index.ts"
import { readerStallMs } from "../../http/limits.ts"
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

/** A service that lists how many items each of its reads of a log returns. */
const startListing = async (settings: Parameters<typeof startMailboxes>[1] = {}) => {
  const reads: Array<number> = []
  const own = await startMailboxes((one) => {
    const system = Object.create(one.system) as Service["system"]
    const read: Service["system"]["read"] = (...query) =>
      Effect.tap(
        one.system.read(...query),
        (items) => Effect.sync(() => reads.push(items.length))
      )
    return { ...one, system: Object.assign(system, { read }) }
  }, settings)
  onTestFinished(() => own.close())
  return { own, reads }
}

/** More large notifications than the buffers of the sockets take. */
const fill = async ({ deposit }: Mailboxes, href: string): Promise<number> => {
  const count = 60
  for (let i = 0; i < count; i++) await deposit(href, `s${i} ${"x".repeat(240_000)}`)
  return count
}

/**
 * Waits until nothing more is read for a stream, since its sockets are full: nothing for so long
 * that a read under way on a busy machine has ended.
 */
const untilStalled = async (reads: ReadonlyArray<number>): Promise<void> => {
  await expect.poll(() => reads.length).toBeGreaterThan(0)
  const counts: Array<number> = []
  await expect.poll(() => {
    counts.push(reads.length)
    const last = counts.slice(-6)
    return last.length === 6 && new Set(last).size === 1
  }, { interval: 500, timeout: 120_000 }).toBe(true)
}

/** A stream of a token that stalls; the token is revoked meanwhile. */
const revokedStream = async (recheckMs: number) => {
  const { own, reads } = await startListing({ openAnswers: { recheckMs } })
  const basic = own.bob
  const body = "<mailbox><name>of-bob</name></mailbox>"
  const href = (await own.send("POST", "/mailboxes", { basic, body })).header("location")
  const count = await fill(own, href)
  const issued = await own.send("POST", "/accounts/bob/token", { basic })
  expect(issued.status).toBe(201)
  reads.length = 0
  const live = await openStream(href, `bob:${textOf(issued.xml)}`)
  await untilStalled(reads)
  const token = issued.xml.attributes["href"] ?? ""
  expect((await own.send("DELETE", token, { basic })).status).toBe(204)
  return { count, live, own }
}

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

  test("with changes=true, marks and removals are events too, without a position", async () => {
    const { href } = await service.open("changing")
    const one = (await service.deposit(href, "one")).header("location")
    const two = (await service.deposit(href, "two")).header("location")
    const since = timeOf(await service.send("GET", href, { basic: owner }))
    const change = async (method: string, path: string, body?: string) => {
      const sent = { basic: owner, ...body === undefined ? {} : { body } }
      expect((await service.send(method, path, sent)).status).toBe(204)
    }
    const page = await stream(`${href}?since=${since}&changes=true`)
    const feed = await stream(`${href}?since=${since}`)
    for (
      const [method, path, body] of [
        ["PUT", `${two}/read`],
        ["DELETE", `${two}/read`],
        ["PUT", `${href}/read`, `<read><time>${since}</time></read>`],
        ["DELETE", one]
      ] as const
    ) {
      await change(method, path, body)
      expect([method, path, await page.next()])
        .toEqual([method, path, { event: "changed", id: "", data: href }])
    }
    // A mark that is there already changes nothing, and a deposit is no change beside the log.
    await change("PUT", `${two}/read`)
    await service.deposit(href, "three")
    const [shown, fed] = [await page.next(), await feed.next()]
    expect(shown?.data).toContain("three")
    expect(fed).toEqual(shown)
    page.close()
    feed.close()
    const accept = "text/event-stream"
    const wrong = await service.send("GET", `${href}?changes=all`, { basic: owner, accept })
    expect([wrong.status, wrong.text.includes("changes must be true, or absent")])
      .toEqual([400, true])
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
    const { own, reads } = await startListing()
    const { href } = await own.open("stalled")
    const count = await fill(own, href)
    reads.length = 0
    const live = await stream(href)
    await untilStalled(reads)
    expect(reads.length).toBeLessThan(count)
    for (let i = 0; i < count; i++) expect((await live.next())?.data).toContain(`s${i} x`)
    expect(Math.max(...reads)).toBe(1)
    live.close()
  })

  test("a reader that stalls gets nothing more once its token is revoked", async () => {
    // Only the wait for the reader itself causes a check.
    const { count, live } = await revokedStream(3_600_000)
    let received = 0
    while (received < count && await live.next() !== undefined) received++
    expect(received).toBeLessThan(count)
  })

  test("a stream ends while its reader stalls, once its token is revoked", async () => {
    const { live, own } = await revokedStream(100)
    const open = () => own.services.reduce((sum, { openAnswers }) => sum + openAnswers.size, 0)
    // Before the reader loses its connection for reading nothing.
    await expect.poll(open, { timeout: readerStallMs / 2 }).toBe(0)
    live.close()
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
