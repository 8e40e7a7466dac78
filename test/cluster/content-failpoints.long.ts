/**
 * The owner of a content dies after its commit, before its reply: two nodes on one NATS server. The
 * bytes are there afterwards, and a repetition with the same Idempotency-Key finds them.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, expectStatus, linkOf, pathOf, send } from "../e2e/client.ts"
import { cleanUp, eventually, type Service, start } from "../e2e/process.ts"
import { type NatsServer, startServer } from "../runtime/nats/servers.ts"

/** The lease of a membership ends 13 s after a death. */
const servedWithinMs = 60_000
const contentsCount = 24
const testMs = 240_000

let nats: NatsServer
let front: Service

beforeAll(async () => {
  nats = await startServer()
  front = await start({ env: { NATS_URL: nats.url, NODE_ID: "front" } })
})
afterAll(async () => {
  cleanUp()
  await nats.close()
})

const startOwner = (failpoint: string): Promise<Service> =>
  start({ env: { NATS_URL: nats.url, NODE_ID: "owner", RESTANTE_FAILPOINT: failpoint } })

const bytesOf = (text: string, size: number): Buffer => Buffer.alloc(size, `${text} `)

const publish = (key: string, body: Buffer): Promise<Answer> =>
  send(front.url, "/content", {
    method: "POST",
    headers: { "idempotency-key": `"the key of the content ${key}"` },
    body
  })

const read = (path: string): Promise<Answer> =>
  eventually(servedWithinMs, `${path} is served`, async () => {
    const answer = await send(front.url, path)
    return answer.status >= 500 ? undefined : answer
  }, 500)

/** The answer to a request that may be repeated, once the service is whole again. */
const repeat = (what: string, request: () => Promise<Answer>): Promise<Answer> =>
  eventually(servedWithinMs, what, async () => {
    const answer = await request()
    return answer.status >= 500 || answer.status === 409 ? undefined : answer
  }, 500)

describe.each([2_000, 300_000])("content of %i bytes", (size) => {
  it("is published once by a repeated POST", async () => {
    const owner = await startOwner("committed:content:1")
    const published: Array<{ readonly key: string; readonly answer: Answer }> = []
    const isOver = () => owner.isOver
    for (let n = 0; !isOver(); n++) {
      expect(n).toBeLessThan(500)
      const key = `${size} ${n}`
      published.push({ key, answer: await publish(key, bytesOf(key, size)) })
    }
    const lost = published.filter(({ answer }) => answer.status !== 202)
    expect(lost.length).toBeGreaterThan(0)
    for (const { answer } of lost) expect(answer.status).toBe(503)
    const paths = new Set<string>()
    for (const { answer, key } of published) {
      const body = bytesOf(key, size)
      const again = await repeat(`${key} is repeated`, () => publish(key, body))
      expectStatus(again, 202)
      const path = pathOf(again.headers.get("location"))
      if (answer.status === 202) expect(path).toBe(pathOf(answer.headers.get("location")))
      paths.add(path)
      expect(expectStatus(await read(path), 200).bytes.equals(body)).toBe(true)
    }
    expect(paths.size).toBe(published.length)
  }, testMs)

  it("is replaced by a PUT", async () => {
    const contents: Array<{ path: string; edit: string; body: Buffer }> = []
    for (let n = 0; n < contentsCount; n++) {
      const body = bytesOf(`old ${n}`, size)
      const answer = expectStatus(
        await repeat("it is published", () => publish(`old ${size} ${n}`, body)),
        202
      )
      contents.push({
        path: pathOf(answer.headers.get("location")),
        edit: linkOf(answer, "edit"),
        body
      })
    }
    const owner = await startOwner("committed:content:1")
    const lost: Array<string> = []
    const isOver = () => owner.isOver
    for (let n = 0; !isOver(); n++) {
      expect(n).toBeLessThan(500)
      const content = contents[n % contents.length]
      if (content === undefined) throw new Error("nothing was published")
      const body = bytesOf(`new ${n}`, size)
      const { status } = await send(front.url, content.edit, { method: "PUT", body })
      // The owner dies after the commit: the new body counts, whatever the answer was.
      if (status === 204 || isOver()) content.body = body
      if (status !== 204) lost.push(`${content.path}: ${status}`)
    }
    expect(lost.map((line) => line.slice(-3))).toEqual(["503"])
    for (const { body, path } of contents) {
      expect(expectStatus(await read(path), 200).bytes.equals(body)).toBe(true)
    }
  }, testMs)
})
