/**
 * A commit that was kept, and nobody is told: the request fails with 503. The repetition with the
 * same Idempotency-Key finds what was stored, and creates nothing.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { deduplicationWindowItems } from "../../actors/limits.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { editOf, locationOf, plain } from "./content-harness.ts"
import { adminToken, type Answered, type Harness, type Sending } from "./harness.ts"
import { keyed, loseReply, repeatLost, startLosing } from "./lost-replies.ts"
import { notification } from "./mailbox-harness.ts"

const basic = `admin:${adminToken}`

let service: Harness

beforeAll(async () => {
  service = await startLosing()
})
afterAll(() => service.close())

const repeated = (
  key: string,
  path: string,
  sending: Sending,
  message: string,
  isKept: boolean,
  meanwhile?: () => Promise<void>
): Promise<Answered> => repeatLost(service, { key, path, sending }, { message, isKept }, meanwhile)

const storedBlobs = () => service.run(service.service.blobs.scan(undefined, 10_000))

it.each([true, false])("content is published once (kept: %s)", async (isKept) => {
  const key = `content ${isKept}`
  loseReply("Publish", isKept)
  const first = await service.send("POST", "/content", keyed(key, plain("bytes")))
  expect(first.status).toBe(503)
  // An orphan, or the body of the content: only the content knows.
  const [left = "", ...others] = await storedBlobs()
  expect(others).toEqual([])
  const answered = await service.send("POST", "/content", keyed(key, plain("bytes")))
  expect(answered.status).toBe(202)
  expect((await service.send("GET", locationOf(answered))).text).toBe("bytes")
  expect((await storedBlobs()).length).toBe(isKept ? 1 : 2)
  const { blobs } = service.service
  if (!isKept) await service.run(blobs.remove(left))
  expect((await service.send("POST", "/content", keyed(key, plain("others")))).status).toBe(422)
  expect((await service.send("DELETE", editOf(answered))).status).toBe(204)
  const again = await service.send("POST", "/content", keyed(key, plain("bytes")))
  expect([again.status, locationOf(again)]).toEqual([202, locationOf(answered)])
  await expect.poll(storedBlobs).toEqual([])
})

it("an ambiguous publication is found with another body, and after its removal", async () => {
  loseReply("Publish", true)
  expect((await service.send("POST", "/content", keyed("ambiguous", plain("one")))).status).toBe(
    503
  )
  expect((await service.send("POST", "/content", keyed("ambiguous", plain("two")))).status).toBe(
    422
  )
  const answered = await service.send("POST", "/content", keyed("ambiguous", plain("one")))
  expect((await service.send("GET", locationOf(answered))).text).toBe("one")
  await service.send("DELETE", editOf(answered))
  await expect.poll(storedBlobs).toEqual([])
})

it.each([true, false])(
  "content is replaced as a whole or not at all (kept: %s)",
  async (isKept) => {
    const published = await service.send("POST", "/content", plain("old"))
    const edit = editOf(published)
    loseReply("Overwrite", isKept)
    expect((await service.send("PUT", edit, plain("new"))).status).toBe(503)
    const { status, text } = await service.send("GET", locationOf(published))
    expect([status, text]).toEqual([200, isKept ? "new" : "old"])
    expect((await service.send("PUT", edit, plain("third"))).status).toBe(204)
    expect((await service.send("GET", locationOf(published))).text).toBe("third")
    await service.send("DELETE", edit)
  }
)

it.each([true, false])("a deposit is stored once (kept: %s)", async (isKept) => {
  const name = `ambiguous-${isKept}`
  await service.send("POST", "/mailboxes", { basic, headers: { Slug: name } })
  const path = `/mailboxes/${name}`
  const list = async () => {
    const listing = await service.send("GET", path, { basic })
    return childrenOf(listing.xml, "notification").map(({ attributes }) => attributes["href"])
  }
  const body = notification("keyed")
  const answered = await repeated("1", path, { body }, "Deposit", isKept)
  expect([answered.status, await list()]).toEqual([202, [locationOf(answered)]])
  // Another key is another deposit.
  const other = await service.send("POST", path, keyed("another", { body }))
  expect(await list()).toEqual([locationOf(answered), locationOf(other)])
  const { origin } = new URL(service.base)
  const removed = { href: "" }
  const late = await repeated("3", path, { body }, "Deposit", isKept, async () => {
    if (!isKept) return
    removed.href = (await list())[2] ?? ""
    expect((await service.send("DELETE", removed.href, { basic })).status).toBe(204)
  })
  expect(locationOf(late)).toMatch(new RegExp(`^${origin}${path}/notifications/`))
  if (isKept) expect(locationOf(late)).toBe(removed.href)
  expect(await list()).toHaveLength(isKept ? 2 : 3)
})

it.each([
  ["known", false],
  ["not known yet", true]
])("a deposit is found behind more than the last thousand (%s)", async (_, isSignalLate) => {
  const path = `/mailboxes/busy-${isSignalLate}`
  await service.send("POST", "/mailboxes", { basic, headers: { Slug: `busy-${isSignalLate}` } })
  const keyedPost = { key: "busy", path, sending: { body: notification("keyed") } }
  const lost = { message: "Deposit", isKept: true, isSignalLate }
  const answered = await repeatLost(service, keyedPost, lost, async () => {
    const deposits = Array.from({ length: deduplicationWindowItems + 10 }, (_, at) => at)
    for (let at = 0; at < deposits.length; at += 100) {
      await Promise.all(
        deposits.slice(at, at + 100).map((n) =>
          service.send("POST", path, { body: notification(`n${n}`) })
        )
      )
    }
  })
  const listing = await service.send("GET", `${path}?limit=1`, { basic })
  expect(childrenOf(listing.xml, "notification")[0]?.attributes["href"]).toBe(locationOf(answered))
})

it.each([true, false])("a receipt is stored once (kept: %s)", async (isKept) => {
  const published = await service.send("POST", "/content", plain("x"))
  const path = locationOf(published)
  const sending = { body: "<receipt status=\"received\"/>" }
  await service.send("POST", path, sending)
  const answered = await repeated("receipt", path, sending, "Receipt", isKept)
  expect([answered.status, locationOf(answered)]).toEqual([202, `${path}/receipts/2`])
  const listed = await service.send("GET", `${editOf(published)}/receipts`)
  expect(childrenOf(listed.xml, "receipt")).toHaveLength(2)
  await service.send("DELETE", editOf(published))
})

it.each([true, false])("a mailbox and a session are created once (kept: %s)", async (isKept) => {
  const mailbox = { basic, body: "<mailbox><title>t</title></mailbox>" }
  const opened = await repeated(`m ${isKept}`, "/mailboxes", mailbox, "Create", isKept)
  expect(opened.status).toBe(201)
  expect((await service.send("GET", locationOf(opened), { basic })).status).toBe(200)
  const before = childrenOf((await service.send("GET", "/sessions")).xml, "session").length
  const session = { body: "<answer continue=\"true\">go</answer>" }
  const begun = await repeated(`s ${isKept}`, "/sessions", session, "Start", isKept)
  expect(begun.status).toBe(201)
  const after = childrenOf((await service.send("GET", "/sessions")).xml, "session").length
  expect(after).toBe(before + 1)
})
