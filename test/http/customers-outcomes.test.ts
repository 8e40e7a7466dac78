/**
 * Writes of a load whose outcome is unknown: the store may have kept them. The service finds out
 * before it answers. If it cannot, a repetition with the same Idempotency-Key finds the load.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { collectBlobs } from "../../http/blob-garbage.ts"
import { resumeLoads } from "../../http/resources/customers/load-application.ts"
import { loadsTable } from "../../http/resources/customers/load.ts"
import { customer } from "./customers-harness.ts"
import { adminToken, type Harness } from "./harness.ts"
import { hasLostReplies, loseNoMoreReplies, loseReplies, loseReply,
  startLosing } from "./lost-replies.ts"
import { eventually } from "./receiver.ts"

const basic = `admin:${adminToken}`

let service: Harness

beforeAll(async () => {
  service = await startLosing()
})
afterAll(() => service.close())

const upload = (body: string, headers: Record<string, string> = {}) =>
  service.send("PUT", "/customers", { basic, type: "text/csv", body, headers })

const change = async (id: string) => {
  const body = customer("Newer", 40)
  const { status } = await service.send("PUT", `/customers/${id}`, { basic, body })
  expect([200, 201]).toContain(status)
}

const nameOf = async (id: string) => (await service.send("GET", `/customers/${id}`)).child("name")

const storedFiles = async () =>
  (await service.run(service.service.blobs.scan(undefined, 10_000)))
    .filter((blob) => blob.startsWith("load="))

const loadsCount = async () =>
  (await service.run(service.service.records.range(loadsTable, { limit: 100 }))).length

it.each([true, false])(
  "the service finds out whether it has a load, and answers then (kept: %s)",
  async (isKept) => {
    const id = `found-${isKept}`
    loseReply(loadsTable, isKept)
    const loaded = await upload(`id,name,age\n${id},Older,30\n`)
    expect([loaded.status, hasLostReplies()]).toEqual([200, true])
    await change(id)
    await service.run(resumeLoads(service.service))
    expect(await nameOf(id)).toBe("Newer")
    expect(await storedFiles()).toEqual([])
  }
)

it.each([true, false])(
  "a load that is unknown until the deadline is found by its key (kept: %s)",
  async (isKept) => {
    const id = `unknown-${isKept}`
    const body = `id,name,age\n${id},Older,30\n`
    const key = { "Idempotency-Key": `"the file ${isKept}"` }
    const before = await loadsCount()
    loseReplies({ message: loadsTable, isKept }, Infinity)
    const unknown = await upload(body, key)
    const [path = ""] = /\/loads\/[A-Za-z0-9_-]+/.exec(unknown.child("detail") ?? "") ?? []
    expect([unknown.status, path]).toEqual([503, expect.stringContaining("/loads/")])
    loseNoMoreReplies()
    const { blobs } = service.service
    const settled = { ...service.service, blobs: { ...blobs, scanSettled: blobs.scan } }
    if (!isKept) {
      expect(await storedFiles()).toHaveLength(1)
      await service.run(collectBlobs(settled))
      expect(await storedFiles()).toEqual([])
    }
    // 202 while the node that answered 503 continues the load.
    const repeated = await eventually("it is loaded", async () => {
      const answer = await upload(body, key)
      expect([200, 202]).toContain(answer.status)
      expect(answer.header("location")).toBe(service.base + path)
      return answer.status === 200 ? answer : undefined
    })
    await change(id)
    expect((await upload(body, key)).text).toBe(repeated.text)
    const other = await upload(`${body}${id}-2,Other,1\n`, key)
    expect([other.status, other.child("type")]).toEqual([
      422,
      expect.stringContaining("idempotency-key-reuse")
    ])
    const lenient = await upload(body, { ...key, Prefer: "handling=lenient" })
    expect(lenient.status).toBe(422)
    await service.run(resumeLoads(service.service))
    expect([await nameOf(id), await loadsCount()]).toEqual(["Newer", before + 1])
    expect(await storedFiles()).toEqual([])
  },
  30_000
)

it("a kept load without a key continues as soon as the store answers", async () => {
  loseReplies({ message: loadsTable, isKept: true }, Infinity)
  expect((await upload("id,name,age\nsoon,Older,30\n")).status).toBe(503)
  loseNoMoreReplies()
  await eventually("it is loaded", async () => await nameOf("soon") === "Older" || undefined)
  await change("soon")
  await service.run(resumeLoads(service.service))
  expect(await nameOf("soon")).toBe("Newer")
  await expect.poll(storedFiles).toEqual([])
}, 30_000)

it.each([true, false])(
  "a load continues at once after a step of unknown outcome (kept: %s)",
  async (isKept) => {
    const id = `step-${isKept}`
    loseReply("customers", isKept)
    const accepted = await upload(`id,name,age\n${id},Older,30\n`)
    expect([accepted.status, hasLostReplies()]).toEqual([202, true])
    await eventually("it is done", async () => {
      const { xml } = await service.send("GET", accepted.header("location"))
      return xml.attributes["status"] === "done" || undefined
    })
    expect(await nameOf(id)).toBe("Older")
    await expect.poll(storedFiles).toEqual([])
  }
)
