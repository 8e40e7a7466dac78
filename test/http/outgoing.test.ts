/** One outgoing notification by its protocol (protocol §1.3): A6, A8, retry. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { textOf } from "../../http/formats/xml/index.ts"
import { repeatLost } from "./lost-replies.ts"
import { admin, each, type OutgoingHarness, pathOf, type Receiver, recipients, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"

const formType = "application/x-www-form-urlencoded"

let service: OutgoingHarness
let receiver: Receiver
let alice = ""
let bob = ""

beforeAll(async () => {
  service = await startOutgoing()
  alice = await service.account("alice")
  bob = await service.account("bob")
})
afterAll(() => service.close())
beforeEach(async () => {
  receiver = await startReceiver()
  return () => receiver.close()
})

const mailbox = (status = 202, name = "inbox") => `${receiver.base}/${status}/${name}`

describe("A6 GET /outgoing/{account}/{notification}", () => {
  it("has each recipient, and HEAD the count of each status", async () => {
    const posted = await service.post(alice, [mailbox(), mailbox(410), mailbox(503)])
    const href = posted.header("location")
    let answer = await service.send("GET", href, { basic: alice })
    while (each(answer, "status").includes("waiting")) {
      answer = await service.send("GET", href, { basic: alice })
    }
    expect(each(answer, "status")).toEqual(["success", "failed", "retry"])
    expect(each(answer, "code")).toEqual(["202", "410", "503"])
    expect(each(answer, "attempts")).toEqual(["1", "1", "1"])
    const [success, failed, retry] = recipients(answer).map(({ attributes }) => attributes)
    expect([success?.["problem"], success?.["next"]]).toEqual([undefined, undefined])
    expect([typeof failed?.["problem"], failed?.["next"]]).toEqual(["string", undefined])
    expect(typeof retry?.["problem"]).toBe("string")
    for (const time of [answer.xml.attributes["time"], failed?.["last"], retry?.["next"]]) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    }
    const head = await service.send("HEAD", href, { basic: alice })
    expect(head.header("notification-status")).toBe("waiting; success=1; retry=1; failed=1")
    expect([head.status, head.text, head.etag]).toEqual([200, "", answer.etag])
    const headers = { "If-None-Match": answer.etag }
    const same = await service.send("GET", href, { basic: alice, headers })
    expect([same.status, same.header("notification-status")]).toEqual([
      304,
      "waiting; success=1; retry=1; failed=1"
    ])
  })

  it("is served as JSON, text and a page", async () => {
    const posted = await service.post(alice, [mailbox(410)])
    const href = posted.header("location")
    await service.until(href, alice, "failed")
    const get = (accept: string) => service.send("GET", href, { basic: alice, accept })
    expect((await get("application/json")).json).toMatchObject({
      status: "failed",
      recipient: [{ status: "failed", href: mailbox(410), attempts: "1", code: "410" }]
    })
    expect((await get("text/plain")).text).toContain(`href: ${mailbox(410)}`)
    const page = await get("text/html")
    for (const part of ["✗ failed", mailbox(410), "/retry\"", "value=\"delete\"", "/live.js"]) {
      expect(page.text).toContain(part)
    }
    expect((await get("image/png")).status).toBe(406)
    expect(page.header("vary")).toBe("Accept, Authorization, Cookie")
  })

  it("is for the account and admins: 401, 403, 404", async () => {
    const posted = await service.post(alice, [mailbox()])
    const href = posted.header("location")
    const id = href.split("/").at(-1) ?? ""
    const status = async (path: string, basic?: string, method = "GET") =>
      (await service.send(method, path, basic === undefined ? {} : { basic })).status
    for (const method of ["GET", "DELETE"]) {
      expect(await status(href, undefined, method)).toBe(401)
      expect(await status(href, bob, method)).toBe(403)
      expect(await status(`/outgoing/bob/${id}`, bob, method)).toBe(404)
      expect(await status(`/outgoing/bob/${id}`, admin, method)).toBe(404)
      expect(await status("/outgoing/alice/unknown", alice, method)).toBe(404)
      expect(await status("/outgoing/alice/a.b", alice, method)).toBe(404)
      expect(await status(`${href}~x`, alice, method)).toBe(404)
    }
    expect(await status(`${href}/retry`, bob, "POST")).toBe(403)
    expect(await status(href, admin)).toBe(200)
    expect(await status(href, alice, "PUT")).toBe(405)
    const options = await service.send("OPTIONS", href)
    expect(options.header("allow")).toBe("GET, HEAD, POST, DELETE, OPTIONS")
  })
})

describe("POST …/{notification}/retry", () => {
  it("retries the failed ones: 202; 409 when none has failed; 303 for a form", async () => {
    const posted = await service.post(alice, [mailbox(410), mailbox(202, "b")])
    const href = posted.header("location")
    await service.until(href, alice, "failed")
    receiver.answer(202)
    const retried = await service.send("POST", `${href}/retry`, { basic: alice })
    expect([retried.status, retried.xml.name]).toEqual([202, "notification"])
    const sent = await service.until(href, alice, "sent")
    expect(each(sent, "attempts")).toEqual(["2", "1"])
    expect(receiver.received.map(({ path }) => path).sort()).toEqual([
      "/202/b",
      "/410/inbox",
      "/410/inbox"
    ])
    const repeated = await service.send("POST", `${href}/retry`, { basic: alice })
    expect([repeated.status, repeated.child("detail")]).toEqual([409, "no recipient has failed"])
    receiver.answer(410)
    const other = (await service.post(alice, [mailbox()])).header("location")
    await service.until(other, alice, "failed")
    const form = { basic: alice, type: formType, body: "", accept: "text/html" }
    const page = await service.send("POST", `${other}/retry`, form)
    expect([page.status, page.header("location")]).toEqual([303, other])
  })
})

describe("POST …/{notification}/retry, repeated after a lost answer", () => {
  it("is 202 with the same key, and retries nothing again", async () => {
    const posted = await service.post(alice, [mailbox(410)])
    const href = posted.header("location")
    await service.until(href, alice, "failed")
    const repeated = await repeatLost(
      service,
      { key: "retry", path: `${href}/retry`, sending: { basic: alice } },
      { message: "Retry", isKept: true },
      () => service.until(href, alice, "failed")
    )
    expect([repeated.status, each(repeated, "attempts")]).toEqual([202, ["2"]])
    expect(receiver.received).toHaveLength(2)
  })

  it("retries nothing again after another retry without a key", async () => {
    const href = (await service.post(alice, [mailbox(410)])).header("location")
    await service.until(href, alice, "failed")
    const repeated = await repeatLost(
      service,
      { key: "earlier retry", path: `${href}/retry`, sending: { basic: alice } },
      { message: "Retry", isKept: true },
      async () => {
        await service.until(href, alice, "failed")
        expect((await service.send("POST", `${href}/retry`, { basic: alice })).status).toBe(202)
        await service.until(href, alice, "failed")
      }
    )
    expect([repeated.status, each(repeated, "attempts")]).toEqual([202, ["3"]])
    expect(receiver.received).toHaveLength(3)
  })
})

describe("A8 DELETE /outgoing/{account}/{notification}", () => {
  it("204, then 410, and it is in no listing; If-Match is honored", async () => {
    const posted = await service.post(alice, [mailbox(503)])
    const href = posted.header("location")
    const remove = (etag: string) =>
      service.send("DELETE", href, { basic: alice, headers: { "If-Match": etag } })
    expect((await remove("\"other\"")).status).toBe(412)
    while (each(await service.send("GET", href, { basic: alice }), "attempts")[0] !== "1");
    const { etag } = await service.send("GET", href, { basic: alice, accept: "text/html" })
    const removed = await remove(etag)
    expect([removed.status, removed.text]).toEqual([204, ""])
    for (const method of ["GET", "HEAD", "DELETE"]) {
      expect((await service.send(method, href, { basic: alice })).status).toBe(410)
    }
    expect((await service.send("POST", `${href}/retry`, { basic: alice })).status).toBe(410)
    const listing = await service.send("GET", pathOf(alice), { basic: alice })
    expect(listing.text).not.toContain(href)
  })

  it("a form does the same, and only with method=delete", async () => {
    const href = (await service.post(alice, [mailbox()])).header("location")
    const post = (body: string, accept = "text/html") =>
      service.send("POST", href, { basic: alice, type: formType, body, accept })
    expect((await post("method=put")).status).toBe(422)
    expect((await service.send("POST", href, { basic: alice, body: "<a/>" })).status).toBe(422)
    const removed = await post("method=delete")
    expect([removed.status, removed.header("location")]).toEqual([
      303,
      `${service.base}/outgoing/alice`
    ])
    expect((await post("method=delete")).status).toBe(410)
    const plain = (await service.post(bob, [mailbox()])).header("location")
    const gone = await service.send("POST", plain, {
      basic: admin,
      type: formType,
      body: "method=delete"
    })
    expect(gone.status).toBe(204)
  })

  it("shows what is quoted in a page as text", async () => {
    const to = `${mailbox(410)}?a='&amp;b`
    const posted = await service.post(alice, [to])
    await service.until(posted.header("location"), alice, "failed")
    const page = await service.send("GET", posted.header("location"), {
      basic: alice,
      accept: "text/html"
    })
    expect(page.text).toContain("?a=&#39;&amp;b")
    expect(textOf(posted.xml)).toBe("")
  })
})
