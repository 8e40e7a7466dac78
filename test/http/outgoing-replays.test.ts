/** Sending a notification again to some of its recipients (protocol §1.3). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { replayedRecipientsMax, replaysFormat, replaysPerHourMax } from "../../actors/index.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { upgradeRetrySeconds } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Answered, type Sending, startService } from "./harness.ts"
import { repeatLost } from "./lost-replies.ts"
import { admin, each, outgoing, type OutgoingHarness, pathOf, type Receiver, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"

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

const sentTo = async (status: string, ...to: ReadonlyArray<string>): Promise<string> => {
  const href = (await service.post(alice, to)).header("location")
  await service.until(href, alice, status)
  return href
}

const body = (...to: ReadonlyArray<string>): string =>
  `<retry>${to.map((uri) => `<to>${uri}</to>`).join("")}</retry>`

const replay = (href: string, ...to: ReadonlyArray<string>): Promise<Answered> =>
  service.send("POST", `${href}/retry`, { basic: alice, body: body(...to) })

describe("POST …/{notification}/retry with recipients", () => {
  it("sends it again to these, with the same key, whatever they have got", async () => {
    const href = await sentTo("sent", `${receiver.base}/1`, `${receiver.base}/2`)
    // Another spelling names the same recipient.
    const answer = await replay(href, `${receiver.base.toUpperCase().replace("HTTP", "http")}/2#x`)
    expect([answer.status, answer.xml.name]).toEqual([202, "notification"])
    await service.until(href, alice, "sent")
    const ofSecond = receiver.received.filter(({ path }) => path === "/2")
    expect([receiver.received.length, ofSecond.length]).toEqual([3, 2])
    expect(new Set(ofSecond.map(({ headers }) => headers["idempotency-key"])).size).toBe(1)
    const { xml } = await service.send("GET", pathOf(alice), { basic: alice })
    expect(childrenOf(xml, "notification")[0]?.attributes["status"]).toBe("sent")
  })

  it("is recognized by a mailbox of the service, which stores nothing twice", async () => {
    await service.send("POST", "/mailboxes", { basic: alice, headers: { Slug: "box" } })
    const href = await sentTo("sent", `${service.base}/mailboxes/box`)
    await replay(href, `${service.base}/mailboxes/box`)
    const again = await service.until(href, alice, "sent")
    expect(each(again, "attempts")).toEqual(["2"])
    const { xml } = await service.send("GET", "/mailboxes/box", { basic: alice })
    expect(childrenOf(xml, "notification")).toHaveLength(1)
  })

  it("tries one at once that waits for its next attempt", async () => {
    const href = (await service.post(alice, [`${receiver.base}/503`])).header("location")
    await expect.poll(async () => each(await service.send("GET", href, { basic: alice }), "status"))
      .toEqual(["retry"])
    receiver.answer(202)
    expect((await replay(href, `${receiver.base}/503`)).status).toBe(202)
    const sent = await service.until(href, alice, "sent")
    expect(each(sent, "attempts")).toEqual(["2"])
  })

  it("takes JSON, and the form of its page", async () => {
    const to = `${receiver.base}/1`
    const href = await sentTo("sent", to)
    const json = await service.send("POST", `${href}/retry`, {
      basic: alice,
      type: "application/json",
      body: JSON.stringify({ to: [to] })
    })
    expect(json.status).toBe(202)
    await service.until(href, alice, "sent")
    const headers = { Accept: "text/html", Origin: service.base }
    const page = await service.send("GET", href, { basic: alice, headers })
    expect(page.text).toContain(">Send again</button>")
    const posted = await service.send("POST", `${href}/retry`, {
      basic: alice,
      type: "application/x-www-form-urlencoded",
      headers,
      body: `to=${encodeURIComponent(`${to}\r\n`)}`
    })
    expect([posted.status, posted.header("location")]).toEqual([303, href])
    const last = await service.until(href, alice, "sent")
    expect(each(last, "attempts")).toEqual(["3"])
  })

  it("is refused for a recipient that is none, and shows none", async () => {
    const href = await sentTo("sent", `${receiver.base}/1`)
    const secret = "http://192.0.2.1/secret"
    for (const to of [secret, `${receiver.base}/2`, "not a URI"]) {
      const answer = await replay(href, `${receiver.base}/1`, to)
      expect([answer.status, answer.child("detail")])
        .toEqual([422, expect.stringContaining("to number 2")])
      expect(answer.text).not.toContain(secret)
    }
    expect(receiver.received).toHaveLength(1)
    // A form is filled in by a person, who sees names and addresses.
    for (
      const [to, fault] of [["nobody", "number 1 is no recipient"], ["", "names no recipient"]]
    ) {
      const page = await service.send("POST", `${href}/retry`, {
        basic: alice,
        accept: "text/html",
        type: "application/x-www-form-urlencoded",
        body: `to=${to}`
      })
      expect(page.text).toContain(
        `✗ “Recipients” ${fault}${to === "" ? "" : " of the notification"}: ` +
          "write a name or an address as the page of the notification has it"
      )
    }
    // An empty list is not taken for those that have failed, which no list names.
    const sendRetry = (type: string, body: string) =>
      service.send("POST", `${href}/retry`, { basic: alice, type, body })
    const empty: ReadonlyArray<readonly [type: string, body: string]> = [
      ["application/xml", "<retry><to> </to></retry>"],
      ["application/xml", "<retry/>"],
      ["application/json", "{\"to\":[]}"],
      ["application/x-www-form-urlencoded", "to=%0D%0A"]
    ]
    for (const [type, text] of empty) {
      const answer = await sendRetry(type, text)
      expect([answer.status, answer.child("detail")], text)
        .toEqual([422, expect.stringContaining("to names no recipient")])
    }
    const failed = await service.send("POST", `${href}/retry`, { basic: alice })
    expect(failed.status).toBe(409)
    const bob = await service.account("bob")
    const other = await service.send("POST", `${href}/retry`, { basic: bob, body: body(secret) })
    expect(other.status).toBe(403)
  })

  it("is refused where a replacement has arrived", async () => {
    const to = `${receiver.base}/1`
    const href = await sentTo("sent", to)
    const item = "<item><description>2</description><url>http://example.org/2</url></item>"
    const replacement = `<notification>${item}</notification>`
    await service.send("POST", `${href}/replacement`, { basic: alice, body: replacement })
    await service.until(href, alice, "sent")
    const answer = await replay(href, to)
    expect([answer.status, answer.child("detail")])
      .toEqual([409, expect.stringContaining("send a new one")])
  })

  it("takes so many in an hour", async () => {
    const to = `${receiver.base}/1`
    const href = await sentTo("sent", to)
    for (let n = 0; n < replaysPerHourMax; n++) {
      expect((await replay(href, to)).status).toBe(202)
      await service.until(href, alice, "sent")
    }
    const answer = await replay(href, to)
    expect(answer.status).toBe(429)
    expect(answer.text).toContain("outgoing-replays")
    expect(Number(answer.header("retry-after"))).toBeGreaterThan(0)
    expect(receiver.received).toHaveLength(1 + replaysPerHourMax)
  })

  it("is made once when its answer is lost and it is repeated with its key", async () => {
    const to = `${receiver.base}/1`
    const href = await sentTo("sent", to)
    const repeated = await repeatLost(
      service,
      { key: "replay", path: `${href}/retry`, sending: { basic: alice, body: body(to) } },
      { message: "Retry", isKept: true },
      () => service.until(href, alice, "sent")
    )
    expect([repeated.status, each(repeated, "attempts")]).toEqual([202, ["2"]])
    expect(receiver.received).toHaveLength(2)
  })

  it("is 503 while a node of an earlier version is in the cluster", async () => {
    const older = await startService((one) =>
      resourceTable({ ...one, system: { ...one.system, format: () => replaysFormat - 1 } })
    )
    try {
      const to = `${older.base}/mailboxes/none`
      const posted = await older.send("POST", "/outgoing/admin", {
        basic: admin,
        body: outgoing([to])
      })
      const answer = await older.send("POST", `${posted.header("location")}/retry`, {
        basic: admin,
        body: body(to)
      })
      expect([answer.status, answer.header("retry-after")])
        .toEqual([503, String(upgradeRetrySeconds)])
    } finally {
      await older.close()
    }
  })
})

describe("POST /outgoing/{account}/retry with recipients", () => {
  let account = ""
  let accounts = 0

  beforeEach(async () => {
    account = await service.account(`span-${++accounts}`)
  })

  const send = async (status: string, ...to: ReadonlyArray<string>): Promise<string> => {
    const href = (await service.post(account, to)).header("location")
    await service.until(href, account, status)
    return href
  }

  const replaySpan = (to: ReadonlyArray<string>, options: Partial<Sending> = {}) =>
    service.send("POST", `${pathOf(account)}/retry?since=1970-01-01T00:00:00Z`, {
      basic: account,
      body: body(...to),
      ...options
    })

  const received = (path: string) => receiver.received.filter((one) => one.path === path)

  it("sends all of the span again to these, with the same keys, and to no others", async () => {
    const [first, second, third] = ["/1", "/2", "/3"].map((path) => receiver.base + path)
    if (first === undefined || second === undefined || third === undefined) throw new Error("three")
    const hrefs = [await send("sent", first, second), await send("sent", first, third)]
    await send("sent", third)
    const failed = await send("failed", `${receiver.base}/410`)
    const answer = await replaySpan([`${first}#x`, second])
    expect([answer.status, answer.xml.attributes])
      .toEqual([202, { notifications: "2", recipients: "3" }])
    for (const href of hrefs) await service.until(href, account, "sent")
    expect(["/1", "/2", "/3", "/410"].map((path) => received(path).length)).toEqual([4, 2, 2, 1])
    const keys = received("/1").map(({ headers }) => headers["idempotency-key"])
    expect(new Set(keys).size).toBe(2)
    expect((await service.send("GET", failed, { basic: account })).xml.attributes["status"])
      .toBe("failed")
    const { xml } = await service.send("GET", pathOf(account), { basic: account })
    expect(childrenOf(xml, "notification").map(({ attributes }) => attributes["status"]))
      .toEqual(["failed", "sent", "sent", "sent"])
  })

  it("has an end, and is made once with its key when its answer is lost", async () => {
    const to = `${receiver.base}/1`
    const href = await send("sent", to)
    const until = await service.send("GET", href, { basic: account })
    const span = `since=1970-01-01T00:00:00Z&until=${until.xml.attributes["time"]}`
    await expect.poll(() => Date.now()).toBeGreaterThan(
      Date.parse(until.xml.attributes["time"] ?? "")
    )
    await send("sent", to)
    const path = `${pathOf(account)}/retry?${span}`
    const repeated = await repeatLost(
      service,
      { key: "span replay", path, sending: { basic: account, body: body(to) } },
      { message: "Retry", isKept: true },
      () => service.until(href, account, "sent")
    )
    expect([repeated.status, received("/1").length]).toEqual([202, 3])
  })

  it("is recognized by a mailbox of the service, which stores nothing twice", async () => {
    await service.send("POST", "/mailboxes", { basic: account, headers: { Slug: "span-box" } })
    const box = `${service.base}/mailboxes/span-box`
    const href = await send("sent", box)
    expect((await replaySpan([box])).xml.attributes["recipients"]).toBe("1")
    expect(each(await service.until(href, account, "sent"), "attempts")).toEqual(["2"])
    const { xml } = await service.send("GET", box, { basic: account })
    expect(childrenOf(xml, "notification")).toHaveLength(1)
  })

  it("takes the form of the page, where an empty field names those that have failed", async () => {
    const to = `${receiver.base}/1`
    await send("sent", to)
    const form = {
      type: "application/x-www-form-urlencoded",
      headers: { Accept: "text/html", Origin: service.base }
    }
    const page = await service.send("GET", pathOf(account), { basic: account, ...form })
    expect(page.text).toMatch(/action="[^"]*\/retry".*<textarea[^>]*name="to"/s)
    const none = await replaySpan([], { ...form, body: "to=" })
    expect([none.status, received("/1").length]).toEqual([202, 1])
    const posted = await replaySpan([], { ...form, body: `to=${encodeURIComponent(`${to}\r\n`)}` })
    expect(posted.status).toBe(202)
    await expect.poll(() => received("/1").length).toBe(2)
  })

  it("counts what was followed up or replayed too often, and is 429 if that is all", async () => {
    const to = `${receiver.base}/1`
    const replaced = await send("sent", to)
    await service.send("POST", `${replaced}/withdrawal`, { basic: account })
    await service.until(replaced, account, "sent")
    expect((await replaySpan([to])).xml.attributes)
      .toEqual({ notifications: "0", recipients: "0", refused: "1" })
    const href = await send("sent", to)
    for (let n = 0; n < replaysPerHourMax; n++) {
      expect((await replaySpan([to])).xml.attributes["recipients"]).toBe("1")
      await service.until(href, account, "sent")
    }
    const answer = await replaySpan([to])
    expect(answer.status).toBe(429)
    expect(answer.text).toContain("outgoing-replays")
    expect(Number(answer.header("retry-after"))).toBeGreaterThan(0)
    await send("sent", to)
    expect((await replaySpan([to])).xml.attributes)
      .toEqual({ notifications: "1", recipients: "1", refused: "2" })
  })

  it("is refused with no recipient in a document, with too many, and to others", async () => {
    const many = Array.from({ length: replayedRecipientsMax + 1 }, (_, n) => `http://a.test/${n}`)
    for (const [to, detail] of [[[" "], "names no recipient"], [many, "at most"]] as const) {
      const answer = await replaySpan(to)
      expect([answer.status, answer.child("detail")])
        .toEqual([422, expect.stringContaining(detail)])
    }
    const json = { type: "application/json" }
    for (const text of ["{\"to\":[]}", "{}", "{\"until\":\"1970-01-02T00:00:00Z\"}"]) {
      expect((await replaySpan([], { ...json, body: text })).status, text).toBe(422)
    }
    expect((await replaySpan(["http://a.test/"], { basic: alice })).status).toBe(403)
    expect((await replaySpan(["http://a.test/"])).xml.attributes)
      .toEqual({ notifications: "0", recipients: "0" })
  })
})
