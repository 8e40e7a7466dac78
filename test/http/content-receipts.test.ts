/** Receipts (A4), orphans, and repeated uploads (protocol §0, §1.1). */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ContentMessage } from "../../actors/content/index.ts"
import { contentKind } from "../../actors/index.ts"
import { receiptDescriptionCharsMax } from "../../actors/limits.ts"
import { collectBlobs } from "../../http/blob-garbage.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { address, StorageUnavailable } from "../../runtime/index.ts"
import { type Contents, editOf, locationOf, startContents } from "./content-harness.ts"
import type { Answered, Sending } from "./harness.ts"

let service: Contents

beforeAll(async () => {
  service = await startContents()
})
afterAll(() => service.close())

const send: Contents["send"] = (...request) => service.send(...request)
const publish: Contents["publish"] = (...parameters) => service.publish(...parameters)

/** The receipts of all pages of a listing, page by page. */
const followPages = async (first: string): Promise<Array<ReadonlyArray<string>>> => {
  const found: Array<ReadonlyArray<string>> = []
  for (let next: string | undefined = first; next !== undefined;) {
    const page: Answered = await send("GET", next)
    expect(page.status).toBe(200)
    found.push(childrenOf(page.xml, "receipt").map(({ attributes }) => attributes["href"] ?? ""))
    next = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1]
  }
  return found
}

describe("A4: receipts", () => {
  const receipt = (attributes: string, inside = "") => ({
    body: `<receipt ${attributes}>${inside}</receipt>`
  })

  it("are accepted from readers and listed for the publisher", async () => {
    const published = await publish("x")
    const href = locationOf(published)
    const edit = editOf(published)
    const mailbox = "http://elsewhere.example/mailboxes/bob"
    const first = await send("POST", href, receipt(`status="received" mailbox="${mailbox}"`))
    expect([first.status, locationOf(first)]).toEqual([202, `${href}/receipts/1`])
    await send(
      "POST",
      href,
      receipt(
        "status=\"problem\"",
        "<description>too & big</description>"
          .replace("&", "&amp;")
      )
    )
    const json = JSON.stringify({ status: "retrieved" })
    expect((await send("POST", href, { type: "application/json", body: json })).status).toBe(202)
    const listed = await send("GET", `${edit}/receipts`)
    const rows = childrenOf(listed.xml, "receipt")
    expect(rows.map((row) => row.attributes["status"]))
      .toEqual(["received", "problem", "retrieved"])
    expect(rows[0]?.attributes["mailbox"]).toBe(mailbox)
    expect(listed.text).toContain("too &amp; big")
    const one = await send("GET", rows[1]?.attributes["href"] ?? "")
    expect([one.status, one.xml.attributes["status"]]).toEqual([200, "problem"])
    expect((await send("GET", `${href}/receipts`)).status).toBe(401)
    expect((await send("GET", `${edit}/receipts/9`)).status).toBe(404)
    expect((await send("GET", `${edit}/receipts/x`)).status).toBe(404)
  })

  it("are listed in pages, oldest first", async () => {
    const published = await publish("x")
    for (let n = 1; n <= 5; n++) {
      const sent = await send("POST", locationOf(published), receipt("status=\"received\""))
      expect(sent.status).toBe(202)
    }
    const uri = `${editOf(published)}/receipts`
    const found = await followPages(`${uri}?limit=2`)
    expect(found.map((hrefs) => hrefs.length)).toEqual([2, 2, 1])
    expect(found.flat()).toEqual([1, 2, 3, 4, 5].map((n) => `${uri}/${n}`))
    for (const query of ["limit=0", "after=x", "after=", "after=-1"]) {
      expect([query, (await send("GET", `${uri}?${query}`)).status]).toEqual([query, 400])
    }
  })

  it("that an earlier version stored have pages of a bounded size", async () => {
    const published = await publish("x")
    const { system } = service.service
    const id = locationOf(published).split("/").at(-1) ?? ""
    const value = JSON.stringify({ status: "problem", description: "x".repeat(250 * 1024) })
    for (let n = 1; n <= 6; n++) {
      const message: ContentMessage = { _tag: "Receipt", access: {}, value }
      await service.run(system.ask(address(contentKind, id), message))
    }
    const uri = `${editOf(published)}/receipts`
    const found = await followPages(uri)
    expect(found.map((hrefs) => hrefs.length)).toEqual([4, 2])
    expect(found.flat()).toEqual([1, 2, 3, 4, 5, 6].map((n) => `${uri}/${n}`))
  })

  it("must follow the document's rules", async () => {
    const href = locationOf(await publish("x"))
    const status = async (sending: Sending) => (await send("POST", href, sending)).status
    expect(await status(receipt("status=\"lost\""))).toBe(422)
    expect(await status(receipt(""))).toBe(422)
    expect(await status(receipt("status=\"received\" mailbox=\"javascript:1\""))).toBe(422)
    expect(await status(receipt("status=\"received\"", "<other/>"))).toBe(422)
    const described = (text: string) =>
      receipt("status=\"problem\"", `<description>${text}</description>`)
    expect(await status(described("x".repeat(receiptDescriptionCharsMax)))).toBe(202)
    const long = await send("POST", href, described("x".repeat(receiptDescriptionCharsMax + 1)))
    expect(long.status).toBe(422)
    expect(long.text).toContain("the description has 1001 characters")
    expect(await status({ body: "<notification/>" })).toBe(422)
    expect(await status({ body: "<receipt" })).toBe(400)
    const typed = await send("POST", href, { type: "text/csv", body: "a" })
    expect(typed.status).toBe(415)
    expect(typed.header("accept-post")).toContain("application/xml")
  })
})

async function* leftBehind() {
  yield Buffer.from("left behind")
}

describe("orphans", () => {
  const idOf = (name: string) => `AAAAAAAAAAAAAAAAAAAAAA=${name}`
  const storedIds = () => service.run(service.service.blobs.scan(undefined, 10_000))

  it("are removed when they are settled, and only if no owner names them", async () => {
    const { blobs, records, system } = service.service
    const href = locationOf(await publish("kept"))
    const load = (state: string) => JSON.stringify({ state, blob: `load=${state}` })
    await service.run(records.write([
      { table: "loads", key: "pending", value: load("pending") },
      { table: "loads", key: "done", value: load("done") }
    ]))
    const put = [idOf("orphan"), "load=pending", "load=done", "load=unknown"]
    for (const id of put) await service.run(blobs.put(id, leftBehind(), 100))
    const before = await storedIds()
    // Another upload of this process, or of another node, may still be committed.
    expect(await service.run(collectBlobs(service.service))).toEqual({ removed: 0, unanswered: 0 })
    const settled = { ...service.service, blobs: { ...blobs, scanSettled: blobs.scan } }
    const down = Effect.fail(new StorageUnavailable({ detail: "planned" }))
    const mute = {
      ...settled,
      records: { ...records, get: () => down },
      system: { ...system, ask: () => down }
    }
    const { removed, unanswered } = await service.run(collectBlobs(mute))
    expect([removed, unanswered]).toEqual([0, before.length])
    expect(await storedIds()).toEqual(before)
    const removeOrDie = (id: string) =>
      id === "load=done" ? Effect.die(new Error("planned")) : blobs.remove(id)
    const defective = { ...settled, blobs: { ...settled.blobs, remove: removeOrDie } }
    expect(await service.run(collectBlobs(defective))).toEqual({ removed: 2, unanswered: 1 })
    expect(await service.run(collectBlobs(settled))).toEqual({ removed: 1, unanswered: 0 })
    const removals = [idOf("orphan"), "load=done", "load=unknown"]
    expect(await storedIds()).toEqual(before.filter((id) => !removals.includes(id)))
    expect((await send("GET", href)).text).toBe("kept")
    await service.run(blobs.remove("load=pending"))
  })

  it("are not left by a refused commit", async () => {
    const published = await publish("first")
    const before = await storedIds()
    const refused = await send("PUT", `${locationOf(published)}~wrong`, { body: "x" })
    expect(refused.status).toBe(404)
    const ifMatch = { body: "x", headers: { "If-Match": "\"none\"" } }
    expect((await send("PUT", editOf(published), ifMatch)).status).toBe(412)
    expect(await storedIds()).toEqual(before)
    expect((await send("PUT", editOf(published), { body: "second" })).status).toBe(204)
    expect((await send("GET", locationOf(published))).text).toBe("second")
    await expect.poll(async () => (await storedIds()).length).toBe(before.length)
  })

  it("are not left by an upload that breaks off", async () => {
    const before = await storedIds()
    const abort = new AbortController()
    async function* dripping() {
      yield Buffer.alloc(100_000)
      abort.abort()
      yield Buffer.alloc(1)
    }
    const init = { method: "POST", body: dripping(), duplex: "half", signal: abort.signal }
    // Node's fetch takes an async iterable as a body; the DOM's types do not say so.
    const sent = fetch(`${service.base}/content`, init as unknown as RequestInit)
    await expect(sent).rejects.toThrow()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await storedIds()).toEqual(before)
  })
})

describe("Idempotency-Key on a stream", () => {
  it("returns the same answer for a repeated key, and 422 with another body", async () => {
    const key = {
      headers: { "Idempotency-Key": "\"the key of one content\"", "Message-Password": "generate" }
    }
    const first = await publish("once", key)
    const repeated = await publish("once", key)
    expect(repeated.status).toBe(202)
    expect(locationOf(repeated)).toBe(locationOf(first))
    expect(editOf(repeated)).toBe(editOf(first))
    expect(repeated.header("message-password")).toBe(first.header("message-password"))
    expect(repeated.text).toBe(first.text)
    expect((await publish("twice", key)).status).toBe(422)
    const digest = createHash("sha256").update("once").digest("base64url")
    const ids = await service.run(service.service.blobs.scan(undefined, 10_000))
    const infos = await Promise.all(ids.map((id) => service.run(service.service.blobs.info(id))))
    expect(infos.filter((info) => info?.digest === digest)).toHaveLength(1)
  })

  it("must be a string", async () => {
    for (const key of ["\"\"", "\"unclosed", "x".repeat(256)]) {
      expect((await publish("x", { headers: { "Idempotency-Key": key } })).status).toBe(400)
    }
  })
})
