/** Live streams and long polls of an outgoing notification. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { parseText } from "../../http/formats/xml/index.ts"
import { askedCount } from "./lost-replies.ts"
import { type OutgoingHarness, type Receiver, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"
import { stream as open } from "./streams.ts"

let service: OutgoingHarness
let receiver: Receiver
let alice = ""

beforeAll(async () => {
  service = await startOutgoing()
  alice = await service.account("alice")
})
afterAll(() => service.close())
beforeEach(async () => {
  receiver = await startReceiver()
  return () => receiver.close()
})

const stream = (href: string, headers: Record<string, string> = {}) => open(href, alice, headers)

const statusOf = (data: string): string | undefined => {
  const parsed = parseText(data)
  if (!parsed.ok) throw new Error(parsed.fault.detail)
  return parsed.value.attributes["status"]
}

const failed = async (): Promise<string> => {
  const posted = await service.post(alice, [`${receiver.base}/410/inbox`])
  const href = posted.header("location")
  await service.until(href, alice, "failed")
  return href
}

describe("a live stream", () => {
  it("sends the status, then each change; gone ends it; it resumes by version", async () => {
    const href = await failed()
    const live = await stream(href)
    expect(live.response.headers.get("content-type")).toBe("text/event-stream")
    const first = await live.next()
    expect([first?.event, statusOf(first?.data ?? "")]).toEqual(["status", "failed"])
    const resumed = await stream(href, { "last-event-id": first?.id ?? "" })
    receiver.answer(202)
    await service.send("POST", `${href}/retry`, { basic: alice })
    for (const one of [live, resumed]) {
      let event = await one.next()
      while (statusOf(event?.data ?? "") !== "sent") {
        expect(Number(event?.id)).toBeGreaterThan(Number(first?.id))
        event = await one.next()
      }
    }
    await service.send("DELETE", href, { basic: alice })
    for (const one of [live, resumed]) {
      expect((await one.next())?.event).toBe("gone")
      expect(await one.next()).toBeUndefined()
    }
  })

  it("needs the right to read; HEAD; begins with the status after an unknown id", async () => {
    const href = await failed()
    const accept = "text/event-stream"
    expect((await service.send("GET", href, { accept })).status).toBe(401)
    const head = await service.send("HEAD", href, { accept, basic: alice })
    expect([head.status, head.header("content-type")]).toEqual([200, accept])
    expect([head.header("cache-control"), head.headers.get("content-length")])
      .toEqual(["no-store", null])
    const begun = await stream(href)
    const { id: present = "" } = await begun.next() ?? {}
    begun.close()
    // The same version of another status, as a restore from a backup may leave it.
    const other = `${present.split(".")[0]}.0`
    for (const id of ["x", "999999999999999", "1e99", other]) {
      const live = await stream(href, { "last-event-id": id })
      const event = await live.next()
      expect([event?.event, statusOf(event?.data ?? "")], id).toEqual(["status", "failed"])
      live.close()
    }
  })

  it("ends at once when the server drains, and so does a wait", async () => {
    const own = await startOutgoing()
    const carol = await own.account("carol")
    const href = (await own.post(carol, [`${receiver.base}/410/inbox`])).header("location")
    const { etag } = await own.until(href, carol, "failed")
    const live = await open(href, carol)
    expect((await live.next())?.event).toBe("status")
    const before = askedCount()
    const waiting = own.send("GET", href, {
      basic: carol,
      headers: { "if-none-match": etag, prefer: "wait=50" }
    })
    // Its handler runs: the server no longer closes without an answer to it.
    await expect.poll(askedCount, { timeout: 20_000 }).toBeGreaterThan(before)
    const closing = own.close()
    expect((await waiting).status).toBe(304)
    expect(await live.next()).toBeUndefined()
    await closing
  })
})

describe("a long poll", () => {
  it("answers when it is another than the client has, or 304 at its end", async () => {
    const href = await failed()
    const { etag } = await service.send("GET", href, { basic: alice })
    const wait = (seconds: number, tag: string) =>
      service.send("GET", href, {
        basic: alice,
        headers: { "if-none-match": tag, prefer: `wait=${seconds}` }
      })
    const same = await wait(1, etag)
    expect([same.status, same.header("preference-applied")]).toEqual([304, "wait=1"])
    expect((await wait(50, "\"other\"")).status).toBe(200)
    const waiting = wait(50, etag)
    await new Promise((resolve) => setTimeout(resolve, 50))
    receiver.answer(202)
    await service.send("POST", `${href}/retry`, { basic: alice })
    const changed = await waiting
    expect(changed.status).toBe(200)
    expect(changed.etag).not.toBe(etag)
    const removing = wait(50, (await service.until(href, alice, "sent")).etag)
    await new Promise((resolve) => setTimeout(resolve, 50))
    await service.send("DELETE", href, { basic: alice })
    expect((await removing).status).toBe(410)
  })
})
