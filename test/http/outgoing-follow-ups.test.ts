/** Replacing and withdrawing what was sent (protocol §1.3, follow-ups). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { followUpsFormat } from "../../actors/index.ts"
import { childOf, childrenOf, childText } from "../../http/formats/xml/index.ts"
import { upgradeRetrySeconds } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Answered, startService } from "./harness.ts"
import { repeatLost } from "./lost-replies.ts"
import { admin, each, outgoing, type OutgoingHarness, type Receiver, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"

const formType = "application/x-www-form-urlencoded"

let service: OutgoingHarness
let receiver: Receiver
let alice = ""
let bob = ""
let mailboxes = 0
/** The path of a new mailbox of bob. */
let box = ""

beforeAll(async () => {
  service = await startOutgoing()
  alice = await service.account("alice")
  bob = await service.account("bob")
})
afterAll(() => service.close())
beforeEach(async () => {
  const name = `box-${mailboxes++}`
  await service.send("POST", "/mailboxes", { basic: bob, headers: { Slug: name } })
  box = `/mailboxes/${name}`
  receiver = await startReceiver()
  return () => receiver.close()
})

const itemOf = (description: string, more = ""): string =>
  `<item><description>${description}</description><url>http://example.org/${description}</url>` +
  `${more}</item>`

const notification = (item: string): string => `<notification>${item}</notification>`

/** Sends to bob's mailbox and to these recipients, until all have it. */
const sentTo = async (...others: ReadonlyArray<string>): Promise<string> => {
  const posted = await service.post(alice, [`${service.base}${box}`, ...others])
  const href = posted.header("location")
  await service.until(href, alice, "sent")
  return href
}

const replaced = (href: string, description: string, basic = alice): Promise<Answered> =>
  service.send("POST", `${href}/replacement`, { basic, body: notification(itemOf(description)) })

const withdrawn = (href: string, basic = alice): Promise<Answered> =>
  service.send("POST", `${href}/withdrawal`, { basic })

const listing = (query = ""): Promise<Answered> =>
  service.send("GET", `${box}${query}`, { basic: bob })

/** The fields of each notification of a listing. */
const entriesOf = ({ xml }: Answered) =>
  childrenOf(xml, "notification").map((one) => {
    const item = childOf(one, "item")
    const field = (name: string) => item === undefined ? undefined : childText(item, name)
    return {
      href: one.attributes["href"] ?? "",
      read: one.attributes["read"],
      description: field("description"),
      url: field("url"),
      replaces: field("replaces"),
      withdrawn: field("withdrawn")
    }
  })

describe("POST …/{notification}/replacement", () => {
  it("leaves the last one in a mailbox here, and names the first one elsewhere", async () => {
    const href = await sentTo(`${receiver.base}/202/inbox`)
    const before = await listing()
    const [first] = entriesOf(before)
    await service.send("PUT", `${first?.href}/read`, { basic: bob })
    const answer = await replaced(href, "second")
    expect([answer.status, answer.xml.name]).toEqual([202, "notification"])
    const after = await service.until(href, alice, "sent")
    expect(each(after, "attempts")).toEqual(["2", "2"])
    expect(after.xml.attributes["replaced"]).toMatch(/^\d{4}-.*Z$/)
    expect(each(after, "location")).toEqual([undefined, undefined])
    expect(entriesOf(await listing())).toEqual([{
      href: expect.any(String),
      read: undefined,
      description: "second",
      url: "http://example.org/second",
      replaces: first?.href,
      withdrawn: undefined
    }])
    // A reader who has seen the first one learns of the second.
    const since = `?since=${encodeURIComponent(before.xml.attributes["time"] ?? "")}`
    expect(entriesOf(await listing(since))).toMatchObject([{ replaces: first?.href }])
    expect((await service.send("GET", first?.href ?? "", { basic: bob })).status).toBe(410)
    const page = await service.send("GET", box, { basic: bob, accept: "text/html" })
    expect(page.text).toContain("replaces an earlier one")
    const [, second] = receiver.received
    expect(second?.body).toContain(`<replaces>${receiver.base}/202/inbox/stored</replaces>`)
    const keys = receiver.received.map(({ headers }) => headers["idempotency-key"])
    expect(new Set(keys).size).toBe(2)
  })

  it("does not show the sender that a reader has removed the first one", async () => {
    const href = await sentTo()
    const [first] = entriesOf(await listing())
    expect((await service.send("DELETE", first?.href ?? "", { basic: bob })).status).toBe(204)
    await replaced(href, "second")
    const removed = await service.until(href, alice, "sent")
    expect(entriesOf(await listing())).toEqual([])
    const attributes = ["status", "attempts", "code", "location", "problem"]
    expect(attributes.map((name) => each(removed, name)[0]))
      .toEqual(["success", "2", "202", undefined, undefined])
  })

  it("is for its sender: 401, 403, 404; not even an admin sends in its name", async () => {
    const href = await sentTo()
    expect((await replaced(href, "x", bob)).status).toBe(403)
    expect((await replaced(href, "x", admin)).status).toBe(403)
    expect((await service.send("POST", `${href}/replacement`)).status).toBe(401)
    expect((await replaced(href.replace("alice", "bob"), "x", bob)).status).toBe(404)
    expect(entriesOf(await listing())).toMatchObject([{ description: "d" }])
  })

  it("keeps the recipients, and writes its own elements: 422", async () => {
    const href = await sentTo()
    const ruleOf = async (body: string): Promise<unknown> => {
      const answer = await service.send("POST", `${href}/replacement`, { basic: alice, body })
      return [answer.status, answer.child("rule")]
    }
    const to = `<to>${service.base}${box}</to>`
    expect(await ruleOf(notification(`${to}${itemOf("x")}`))).toEqual([422, "to"])
    for (const more of ["<replaces>http://a.test/</replaces>", "<withdrawn/>"]) {
      expect(await ruleOf(notification(itemOf("x", more)))).toEqual([422, "replaces"])
    }
    expect(await ruleOf(notification("<item/>"))).toEqual([422, "description"])
  })

  it("has content of its own, which the service publishes", async () => {
    const href = await sentTo()
    const content = "<item><description>c</description><url/><content type=\"text/plain\">" +
      "hello</content></item>"
    const body = notification(content)
    const answer = await service.send("POST", `${href}/replacement`, { basic: alice, body })
    expect(answer.status).toBe(202)
    await service.until(href, alice, "sent")
    const [second] = entriesOf(await listing())
    expect((await service.send("GET", second?.url ?? "")).text).toBe("hello")
  })

  it("is stored once when its answer is lost and it is repeated with its key", async () => {
    const href = await sentTo()
    const body = notification(itemOf("second"))
    const repeated = await repeatLost(
      service,
      { key: "replacement", path: `${href}/replacement`, sending: { basic: alice, body } },
      { message: "FollowUp", isKept: true },
      () => service.until(href, alice, "sent")
    )
    expect([repeated.status, each(repeated, "attempts")]).toEqual([202, ["2"]])
    expect(entriesOf(await listing())).toMatchObject([{ description: "second" }])
  })
})

describe("POST …/{notification}/withdrawal", () => {
  it("leaves when it was withdrawn in a mailbox here, and nothing of the message", async () => {
    const href = await sentTo(`${receiver.base}/202/inbox`)
    const [first] = entriesOf(await listing())
    expect((await withdrawn(href)).status).toBe(202)
    const after = await service.until(href, alice, "sent")
    const atTime = after.xml.attributes["withdrawn"]
    expect(atTime).toMatch(/^\d{4}-.*Z$/)
    const mark = await listing()
    expect(entriesOf(mark)).toEqual([{
      href: expect.any(String),
      read: undefined,
      description: "The sender has withdrawn this notification.",
      url: first?.href,
      replaces: first?.href,
      withdrawn: atTime
    }])
    expect(mark.text).not.toContain("example.org")
    const page = await service.send("GET", box, { basic: bob, accept: "text/html" })
    expect(page.text).toContain("withdrawn by the sender")
    const stored = `${receiver.base}/202/inbox/stored`
    expect(receiver.received[1]?.body)
      .toContain(`<url>${stored}</url><replaces>${stored}</replaces><withdrawn>${atTime}<`)
    expect((await withdrawn(href)).status).toBe(409)
    expect((await replaced(href, "more")).status).toBe(409)
  })

  it("is JSON-LD for an inbox: an Update and a Delete of the first one", async () => {
    const href = await sentTo(`${receiver.base}/inbox/one`)
    await replaced(href, "second")
    await service.until(href, alice, "sent")
    await withdrawn(href)
    await service.until(href, alice, "sent")
    const sent = receiver.received
      .filter(({ headers }) => headers["content-type"] === "application/ld+json")
      .map(({ body }) => JSON.parse(body))
    const origin = `${receiver.base}/inbox/one/stored`
    expect(sent).toMatchObject([
      { type: "Announce" },
      { type: "Update", object: "http://example.org/second", origin },
      { type: "Delete", object: origin }
    ])
  })

  it("is for its sender and admins, and is no removal of the sender's record", async () => {
    const href = await sentTo()
    expect((await withdrawn(href, bob)).status).toBe(403)
    expect((await service.send("POST", `${href}/withdrawal`)).status).toBe(401)
    expect((await withdrawn(href, admin)).status).toBe(202)
    expect((await service.until(href, alice, "sent")).status).toBe(200)
    expect((await service.send("DELETE", href, { basic: alice })).status).toBe(204)
    expect((await withdrawn(href)).status).toBe(410)
    expect(entriesOf(await listing())).toMatchObject([{ replaces: expect.any(String) }])
  })

  it("waits for the next attempt where one has failed", async () => {
    const posted = await service.post(alice, [`${receiver.base}/503/inbox`])
    const href = posted.header("location")
    while (each(await service.send("GET", href, { basic: alice }), "attempts")[0] !== "1");
    receiver.answer(202)
    // The receiver may have it, in spite of its answer.
    await withdrawn(href)
    const waiting = await service.send("GET", href, { basic: alice })
    expect(each(waiting, "status")).toEqual(["retry"])
    expect(receiver.received).toHaveLength(1)
  })

  it("is stored once when its answer is lost and it is repeated with its key", async () => {
    const href = await sentTo()
    const repeated = await repeatLost(
      service,
      { key: "withdrawal", path: `${href}/withdrawal`, sending: { basic: alice } },
      { message: "FollowUp", isKept: true },
      () => service.until(href, alice, "sent")
    )
    expect([repeated.status, each(repeated, "attempts")]).toEqual([202, ["2"]])
    expect(entriesOf(await listing())).toHaveLength(1)
  })
})

describe("a deposit with the elements of a follow-up", () => {
  it("removes nothing, and is stored as it came", async () => {
    await sentTo()
    const [first] = entriesOf(await listing())
    const more = `<replaces>${first?.href}</replaces><withdrawn>2026-01-01T00:00:00Z</withdrawn>`
    const body = notification(itemOf("forged", more))
    for (const basic of [undefined, alice]) {
      const given = basic === undefined ? { body } : { basic, body }
      expect((await service.send("POST", box, given)).status).toBe(202)
    }
    const posted = await service.send("POST", "/outgoing/alice", {
      basic: alice,
      body: body.replace("<item>", `<to>${service.base}${box}</to><item>`)
    })
    await service.until(posted.header("location"), alice, "sent")
    const entries = entriesOf(await listing())
    expect(entries[0]).toEqual(first)
    expect(entries.slice(1).every(({ replaces }) => replaces === first?.href)).toBe(true)
    expect((await service.send("GET", first?.href ?? "", { basic: bob })).status).toBe(200)
  })
})

describe("the page of a sent notification", () => {
  it("replaces and withdraws by forms", async () => {
    const href = await sentTo()
    const page = () => service.send("GET", href, { basic: alice, accept: "text/html" })
    for (const part of ["/replacement\"", "/withdrawal\""]) {
      expect((await page()).text).toContain(part)
    }
    const form = { basic: alice, type: formType, accept: "text/html" }
    const body = new URLSearchParams({ description: "second", url: "http://a.test/", content: "" })
    const sent = await service.send("POST", `${href}/replacement`, {
      ...form,
      body: body.toString()
    })
    expect([sent.status, sent.header("location")]).toEqual([303, href])
    const wrong = await service.send("POST", `${href}/replacement`, { ...form, body: "url=x" })
    expect([wrong.status, wrong.text.includes("/replacement\"")]).toEqual([422, true])
    const removed = await service.send("POST", `${href}/withdrawal`, { ...form, body: "" })
    expect([removed.status, removed.header("location")]).toEqual([303, href])
    const last = await page()
    expect(last.text).toContain("withdrawn")
    for (const part of ["/replacement\"", "/withdrawal\""]) expect(last.text).not.toContain(part)
    // An admin sees no form to send in the name of another account.
    const other = await sentTo()
    const asAdmin = await service.send("GET", other, { basic: admin, accept: "text/html" })
    expect(asAdmin.text).toContain("/withdrawal\"")
    expect(asAdmin.text).not.toContain("/replacement\"")
  })
})

describe("a follow-up while a node of an earlier version is in the cluster", () => {
  it("is 503 until all are upgraded, and changes nothing", async () => {
    const older = await startService((one) =>
      resourceTable({ ...one, system: { ...one.system, format: () => followUpsFormat - 1 } })
    )
    try {
      const body = outgoing([`${older.base}/mailboxes/none`])
      const posted = await older.send("POST", "/outgoing/admin", { basic: admin, body })
      const href = posted.header("location")
      const answer = await older.send("POST", `${href}/withdrawal`, { basic: admin })
      expect([answer.status, answer.header("retry-after")])
        .toEqual([503, String(upgradeRetrySeconds)])
      const { xml } = await older.send("GET", href, { basic: admin })
      expect(xml.attributes["withdrawn"]).toBeUndefined()
    } finally {
      await older.close()
    }
  })
})
