/** The listing of an outgoing mailbox (A7), and the retry of a span of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { NotificationView } from "../../actors/notification/index.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { deleteRequestKey, enterOutgoing,
  removeOutgoing } from "../../http/resources/outgoing/outgoing-entries.ts"
import type { Tagged } from "../../runtime/index.ts"
import type { Answered } from "./harness.ts"
import { observeReplies, repeatLost } from "./lost-replies.ts"
import { admin, each, type OutgoingHarness, pathOf, type Receiver, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"

let service: OutgoingHarness
let receiver: Receiver
let basic = ""
let accounts = 0

beforeAll(async () => {
  service = await startOutgoing()
})
afterAll(() => service.close())
beforeEach(async () => {
  receiver = await startReceiver()
  basic = await service.account(`sender-${accounts++}`)
  return () => receiver.close()
})

const get = (path: string, accept = "application/xml") =>
  service.send("GET", path, { basic, accept })
const list = (query = "") => get(pathOf(basic) + query)
const entries = (answer: Answered) =>
  childrenOf(answer.xml, "notification").map(({ attributes }) => attributes)
const hrefs = (answer: Answered) => entries(answer).map(({ href }) => href)
const nextOf = (answer: Answered): string | undefined =>
  /<([^>]+)>; rel="next"/.exec(answer.headers.get("link") ?? "")?.[1]

/** Sends a notification whose recipient answers with this status; after `503` it keeps waiting. */
const sent = async (status: 202 | 410 | 503): Promise<string> => {
  const posted = await service.post(basic, [`${receiver.base}/${status}/inbox`])
  const href = posted.header("location")
  const ended = { 202: "sent", 410: "failed", 503: "waiting" }[status]
  await service.until(href, basic, ended)
  return href
}

describe("GET /outgoing", () => {
  it("redirects to the caller's own: 303; 401 without credentials", async () => {
    const led = await get("/outgoing")
    expect([led.status, led.header("location")]).toEqual([303, service.base + pathOf(basic)])
    expect((await service.send("GET", "/outgoing")).status).toBe(401)
  })
})

describe("the index", () => {
  it("has one entry for a repeated request, until that is queued", async () => {
    const { records } = service.service
    const first = await service.run(enterOutgoing(service.service, "keyed", "id", true))
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(await service.run(enterOutgoing(service.service, "keyed", "id", true))).toBe(first)
    expect(await service.run(records.range("outgoing", { prefix: "keyed/", limit: 9 }))).toEqual([
      { key: first, value: "waiting" }
    ])
    await service.run(deleteRequestKey(service.service, "keyed", "id"))
    expect(await service.run(records.get("outgoing-keys", "keyed/id"))).toBeUndefined()
  })

  it("loses the key of a request that was never repeated with its entry", async () => {
    const { records } = service.service
    const key = await service.run(enterOutgoing(service.service, "lost", "id", true))
    expect(await service.run(records.get("outgoing-keys", "lost/id"))).toBe(key)
    await service.run(removeOutgoing(service.service, "lost", key.slice("lost/".length)))
    expect(await service.run(records.get("outgoing-keys", "lost/id"))).toBeUndefined()
    expect(await service.run(records.get("outgoing", key))).toBeUndefined()
  })
})

describe("A7 GET /outgoing/{account}", () => {
  it("lists newest first, with status, href and time", async () => {
    const empty = await list()
    expect([empty.status, empty.xml.name, hrefs(empty)]).toEqual([200, "notifications", []])
    expect(empty.xml.attributes["href"]).toBe(service.base + pathOf(basic))
    const created = [await sent(202), await sent(410), await sent(503)]
    const listing = await list()
    expect(hrefs(listing)).toEqual(created.toReversed())
    expect(entries(listing).map(({ status }) => status)).toEqual(["waiting", "failed", "sent"])
    const [first] = entries(listing)
    const one = await get(first?.["href"] ?? "")
    expect(first?.["time"]).toBe(one.xml.attributes["time"])
    expect(listing.header("cache-control")).toBe("private, no-cache")
    expect(listing.header("vary")).toBe("Accept, Authorization, Cookie")
    const headers = { "If-None-Match": listing.etag }
    expect((await service.send("GET", pathOf(basic), { basic, headers })).status).toBe(304)
  })

  it("is paged, each notification once", async () => {
    const created: Array<string> = []
    for (let at = 0; at < 7; at++) created.push(await sent(at % 2 === 0 ? 202 : 410))
    for (
      const [query, expected] of [
        ["?limit=3", created],
        ["?limit=2&status=sent", created.filter((_, at) => at % 2 === 0)],
        ["?limit=1&status=failed", created.filter((_, at) => at % 2 === 1)]
      ] as const
    ) {
      const found: Array<string | undefined> = []
      let next: string | undefined = pathOf(basic) + query
      while (next !== undefined) {
        const page: Answered = await get(next)
        found.push(...hrefs(page))
        next = nextOf(page)
      }
      expect(found).toEqual(expected.toReversed())
    }
    for (const query of ["limit=0", "limit=x", "after=x", "status=lost", "limit=1001"]) {
      expect([query, (await list(`?${query}`)).status]).toEqual([query, 400])
    }
  })

  it("reads no recipients but the first of each notification", async () => {
    const to = Array.from({ length: 90 }, (_, at) => `${receiver.base}/410/${at}`)
    const many = (await service.post(basic, to)).header("location")
    await service.until(many, basic, "failed")
    const one = await sent(202)
    const replied: Array<number> = []
    const observe = ({ _tag }: Tagged, reply: unknown): void => {
      if (_tag !== "Describe") return
      const { view } = reply as { readonly view?: NotificationView } // the reply to Describe
      if (view?.count !== undefined) replied.push(view.recipients.length)
    }
    const page = await observeReplies(observe, () => get(pathOf(basic), "text/html"))
    expect(replied.splice(0)).toEqual([1, 1])
    expect(page.text).toContain(`to ${to[0]?.slice("http://".length)} and 89 others</p>`)
    const failed = await observeReplies(observe, () => list("?status=failed"))
    expect([hrefs(failed), hrefs(await list())]).toEqual([[many], [one, many]])
    expect(new Set(replied.splice(0))).toEqual(new Set([1]))
    const since = new Date(Date.now() + 5_000).toISOString()
    await observeReplies(
      observe,
      () => service.send("POST", `${pathOf(basic)}/retry?since=${since}`, { basic })
    )
    expect(new Set(replied)).toEqual(new Set([1]))
    expect(each(await get(many), "href")).toEqual(to)
  })

  it("filters by the actors' states, not by the hints of the index", async () => {
    const [good, bad, slow] = [await sent(202), await sent(410), await sent(503)]
    const { records } = service.service
    const prefix = `${pathOf(basic).slice("/outgoing/".length)}/`
    const rows = await service.run(records.range("outgoing", { prefix, limit: 10 }))
    expect(rows).toHaveLength(3)
    for (const hint of ["", "waiting"]) {
      if (hint !== "") {
        await service.run(
          records.write(rows.map(({ key }) => ({ table: "outgoing", key, value: hint })))
        )
      }
      expect(hrefs(await list("?status=sent"))).toEqual([good])
      expect(hrefs(await list("?status=failed"))).toEqual([bad])
      expect(hrefs(await list("?status=waiting"))).toEqual([slow])
    }
    const odd = ["0000000000000.queued-soon", "9999999999999.abandoned"]
    await service.run(
      records.write(
        odd.map((one) => ({ table: "outgoing", key: prefix + one, value: "waiting" }))
      )
    )
    expect(hrefs(await list())).toHaveLength(3)
    const remaining = await service.run(records.range("outgoing", { prefix, limit: 10 }))
    expect(remaining.map(({ key }) => key)).toContain(prefix + odd[0])
    expect(remaining.map(({ key }) => key)).not.toContain(prefix + odd[1])
  })

  it("omits removed notifications, and removes their entries", async () => {
    const [first, second] = [await sent(202), await sent(202)]
    const { records } = service.service
    const prefix = `${pathOf(basic).slice("/outgoing/".length)}/`
    const rows = await service.run(records.range("outgoing", { prefix, limit: 10 }))
    await service.send("DELETE", first, { basic })
    await service.run(
      records.write(rows.map(({ key }) => ({ table: "outgoing", key, value: "waiting" })))
    )
    expect(hrefs(await list())).toEqual([second])
    expect(await service.run(records.range("outgoing", { prefix, limit: 10 }))).toHaveLength(1)
  })

  it("is served as JSON, and as a page with its forms", async () => {
    const path = pathOf(basic)
    expect((await get(path, "application/json")).json).toMatchObject({ notification: [] })
    const href = await sent(410)
    expect((await get(path, "application/json")).json).toMatchObject({
      notification: [{ status: "failed", href }]
    })
    const { text } = await get(path, "text/html")
    for (
      const part of [
        "✗ failed",
        `href="${href.slice(service.base.length)}"`,
        `href="${path}?status=failed"`,
        `action="${path}/retry"`,
        `action="${path}"`,
        "id=\"send-to\"",
        `${receiver.base}/410/inbox`
      ]
    ) expect(text).toContain(part)
    const asAdmin = await service.send("GET", path, { basic: admin, accept: "text/html" })
    expect(asAdmin.text).not.toContain("id=\"send-to\"")
  })

  it("is readable by the account and admins: 401, 403; only admins learn what exists", async () => {
    const other = await service.account(`other-${accounts}`)
    const status = async (path: string, as?: string) =>
      (await service.send("GET", path, as === undefined ? {} : { basic: as })).status
    expect(await status(pathOf(basic))).toBe(401)
    expect(await status(pathOf(basic), other)).toBe(403)
    expect(await status("/outgoing/nobody", other)).toBe(403)
    expect(await status(pathOf(basic), admin)).toBe(200)
    expect(await status("/outgoing/nobody", admin)).toBe(404)
    expect(await status("/outgoing/a.b", admin)).toBe(404)
    expect(await status(`${pathOf(basic)}~x`, basic)).toBe(404)
    expect(await status(`${pathOf(basic)}~x`, other)).toBe(404)
    await service.send("DELETE", `/accounts/other-${accounts}`, { basic: admin })
    expect(await status(pathOf(other), admin)).toBe(410)
    const options = await service.send("OPTIONS", pathOf(basic))
    expect(options.header("allow")).toBe("GET, HEAD, POST, OPTIONS")
    expect((await service.send("PUT", pathOf(basic), { basic, body: "<a/>" })).status).toBe(405)
  })
})

/** Entries older than all others, of notifications that are not queued yet. */
const fill = async (count: number, prefix: string) => {
  const rows = Array.from({ length: count }, (_, at) => {
    const key = `${prefix}${9_999_999_999_999 - Date.now() + 50_000 + at}.unqueued`
    return { table: "outgoing", key, value: "waiting" }
  })
  const { records } = service.service
  // A store may limit the changes of one write to this number.
  for (let at = 0; at < count; at += 500) {
    await service.run(records.write(rows.slice(at, at + 500)))
  }
}

describe("a mailbox with very many", () => {
  it("has short pages that link to the next, and is retried in several requests", async () => {
    const prefix = `${pathOf(basic).slice("/outgoing/".length)}/`
    const href = await sent(410)
    await fill(1100, prefix)
    const first = await list("?status=failed&limit=5")
    expect(hrefs(first)).toEqual([href])
    const second = await get(nextOf(first) ?? "")
    expect([hrefs(second), nextOf(second)]).toEqual([[], undefined])
    const retried = await service.send(
      "POST",
      `${pathOf(basic)}/retry?since=1970-01-01T00:00:00Z`,
      { basic }
    )
    expect(retried.xml.attributes["notifications"]).toBe("1")
    const replayed = await service.send(
      "POST",
      `${pathOf(basic)}/retry?since=1970-01-01T00:00:00Z`,
      { basic, accept: "text/html", body: "<retry><to>http://a.test/x</to></retry>" }
    )
    expect(replayed.text).toContain("<input type=\"hidden\" name=\"to\" value=\"http://a.test/x\">")
    const next = retried.xml.attributes["next"] ?? ""
    expect(nextOf(retried)).toBe(next)
    const rest = await service.send("POST", next, { basic, accept: "text/html" })
    expect([rest.status, rest.headers.get("link")?.includes("next")]).toEqual([202, false])
  })
})

describe("POST /outgoing/{account}/retry", () => {
  const retry = (
    query: string,
    options: { readonly body?: string; readonly accept?: string } = {}
  ) =>
    service.send("POST", `${pathOf(basic)}/retry${query}`, {
      basic,
      type: "application/x-www-form-urlencoded",
      ...options
    })

  it("retries the failed recipients since a time, and nothing before it", async () => {
    const early = await sent(410)
    await new Promise((resolve) => setTimeout(resolve, 5))
    const later = [await sent(410), await sent(410)]
    await sent(202)
    const since = (await get(later[0] ?? "")).xml.attributes["time"] ?? ""
    receiver.answer(202)
    const retried = await retry(`?since=${since}`)
    expect([retried.status, retried.xml.name]).toEqual([202, "retried"])
    expect(retried.xml.attributes).toMatchObject({ notifications: "2", recipients: "2" })
    expect(retried.xml.attributes["next"]).toBeUndefined()
    for (const href of later) await service.until(href, basic, "sent")
    expect((await get(early)).xml.attributes["status"]).toBe("failed")
    const none = await retry(`?since=${since}`)
    expect(none.xml.attributes).toMatchObject({ notifications: "0", recipients: "0" })
  })

  it("retries those until a time, and nothing after it", async () => {
    const first = await sent(410)
    const until = (await get(first)).xml.attributes["time"] ?? ""
    await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(until))
    const later = await sent(410)
    receiver.answer(202)
    const span = `since=1970-01-01T00:00:00Z&until=${until}`
    const retried = await retry(`?${span}`)
    expect(retried.xml.attributes).toMatchObject({ notifications: "1", recipients: "1" })
    await service.until(first, basic, "sent")
    expect((await get(later)).xml.attributes["status"]).toBe("failed")
    // The form of the page has an empty field for now.
    for (
      const [fields, notifications] of [[span, "0"], ["since=1970-01-01T00:00:00Z&until=", "1"]]
    ) {
      const posted = await retry("", { body: fields ?? "" })
      expect(posted.xml.attributes).toMatchObject({ notifications })
    }
    for (const query of ["until=", "until=tomorrow", "until=2026-02-30T00:00:00Z"]) {
      const refused = await retry(`?since=1970-01-01T00:00:00Z&${query}`)
      expect([refused.status, refused.child("detail")])
        .toEqual([400, expect.stringContaining("until")])
    }
    const none = await retry("?since=1970-01-01T00:00:00Z&until=1970-01-02T00:00:00Z")
    expect(none.xml.attributes).toMatchObject({ notifications: "0" })
    // What the query lacks is in the form.
    const both = await retry("?since=1970-01-01T00:00:00Z", { body: "until=1970-01-02T00:00:00Z" })
    expect(both.xml.attributes).toMatchObject({ notifications: "0" })
    const reversed = await retry("?since=1970-01-02T00:00:00Z&until=1970-01-01T00:00:00Z")
    expect([reversed.status, reversed.child("detail")])
      .toEqual([400, expect.stringContaining("until is before since")])
    const json = await service.send("POST", `${pathOf(basic)}/retry?since=1970-01-01T00:00:00Z`, {
      basic,
      type: "application/json",
      body: "{\"until\":\"1970-01-02T00:00:00Z\"}"
    })
    expect(json.status).toBe(422)
  })

  it("retries nothing again when it is repeated after a lost answer", async () => {
    const [first, second] = [await sent(410), await sent(410)]
    const attempts = async (href: string) => each(await get(href), "attempts")
    const post = { key: "span", path: `${pathOf(basic)}/retry?since=1970-01-01T00:00:00Z` }
    const repeated = await repeatLost(
      service,
      { ...post, sending: { basic } },
      { message: "Retry", isKept: true },
      async () => {
        // The first attempt has retried one of them or both; they have failed again.
        for (const href of [first, second]) await service.until(href, basic, "failed")
      }
    )
    expect([repeated.status, repeated.xml.name]).toEqual([202, "retried"])
    for (const href of [first, second]) {
      await service.until(href, basic, "failed")
      expect(await attempts(href)).toEqual(["2"])
    }
  })

  it("reads the time from a form too; without one, or with an invalid one, 400", async () => {
    const href = await sent(410)
    receiver.answer(202)
    const page = await retry("", { body: "since=1970-01-01T00:00:00.000Z", accept: "text/html" })
    expect([page.status, page.header("content-type")]).toEqual([202, "text/html; charset=utf-8"])
    await service.until(href, basic, "sent")
    for (const query of ["", "?since=", "?since=yesterday", "?since=2026-02-30T00:00:00Z"]) {
      const refused = await retry(query)
      expect([refused.status, refused.child("detail")]).toEqual([
        400,
        expect.stringContaining("since")
      ])
    }
    expect((await retry("?since=2026-01-01T00:00:00Z&after=x")).status).toBe(400)
    expect((await retry("?since=2026-01-01T00:00:00+01:00")).status).toBe(202)
  })

  it("is for the account and admins", async () => {
    const path = `${pathOf(basic)}/retry?since=2026-01-01T00:00:00Z`
    const other = await service.account(`third-${accounts}`)
    expect((await service.send("POST", path)).status).toBe(401)
    expect((await service.send("POST", path, { basic: other })).status).toBe(403)
    expect((await service.send("POST", path, { basic: admin })).status).toBe(202)
    expect((await service.send("GET", path, { basic })).status).toBe(405)
  })
})
