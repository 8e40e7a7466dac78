/** Receipts (A4), orphans, and repeated uploads (protocol §0, §1.1). */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { sweepOrphans } from "../../http/resources/content/blob-sweep.ts"
import { type Contents, editOf, locationOf, startContents } from "./content-harness.ts"
import type { Sending } from "./harness.ts"

let service: Contents

beforeAll(async () => {
  service = await startContents()
})
afterAll(() => service.close())

const send: Contents["send"] = (...request) => service.send(...request)
const publish: Contents["publish"] = (...parameters) => service.publish(...parameters)

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

  it("must follow the document's rules", async () => {
    const href = locationOf(await publish("x"))
    const status = async (sending: Sending) => (await send("POST", href, sending)).status
    expect(await status(receipt("status=\"lost\""))).toBe(422)
    expect(await status(receipt(""))).toBe(422)
    expect(await status(receipt("status=\"received\" mailbox=\"javascript:1\""))).toBe(422)
    expect(await status(receipt("status=\"received\"", "<other/>"))).toBe(422)
    expect(await status({ body: "<notification/>" })).toBe(422)
    expect(await status({ body: "<receipt" })).toBe(400)
    const typed = await send("POST", href, { type: "text/csv", body: "a" })
    expect(typed.status).toBe(415)
    expect(typed.header("accept-post")).toContain("application/xml")
  })
})

describe("orphans", () => {
  it("are removed; referenced and arriving blobs remain", async () => {
    const { blobs } = service.service
    async function* bytes() {
      yield Buffer.from("left behind")
    }
    const href = locationOf(await publish("kept"))
    await service.run(blobs.put("AAAAAAAAAAAAAAAAAAAAAA=orphan", bytes(), 100))
    await service.run(blobs.put("AAAAAAAAAAAAAAAAAAAAAA=arriving", bytes(), 100))
    service.service.pendingBlobs.add("AAAAAAAAAAAAAAAAAAAAAA=arriving")
    // In a cluster another node may be receiving it: a young blob remains.
    const begunAtMs = () => Effect.succeed(Date.now() - 3_600_000)
    const among = { ...service.service, blobs: { ...blobs, begunAtMs } }
    expect(await service.run(sweepOrphans(among))).toBe(0)
    const later = { ...service.service, nowMs: () => Date.now() + 2 * 86_400_000 }
    expect(await service.run(sweepOrphans(later))).toBe(1)
    expect(await service.run(blobs.info("AAAAAAAAAAAAAAAAAAAAAA=orphan"))).toBeUndefined()
    expect(await service.run(blobs.info("AAAAAAAAAAAAAAAAAAAAAA=arriving"))).toBeDefined()
    expect((await send("GET", href)).text).toBe("kept")
  })

  it("are not left by an upload that breaks off", async () => {
    const before = await service.run(service.service.blobs.scan(undefined, 10_000))
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
    await expect.poll(() => service.service.pendingBlobs.size).toBe(1)
    expect(await service.run(service.service.blobs.scan(undefined, 10_000))).toEqual(before)
  })
})

describe("Idempotency-Key on a stream", () => {
  it("returns the same answer for a repeated key, and 422 with another body", async () => {
    const key = { headers: { "Idempotency-Key": "\"one\"", "Message-Password": "generate" } }
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
