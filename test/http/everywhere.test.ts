/**
 * Every node shows an acknowledged change at once. The test makes each change at one node and reads
 * it at all nodes before the next. A single node answers all requests.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, type Sending, startService } from "./harness.ts"

let service: Harness
let turn = 0
beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const admin = `admin:${adminToken}`
const rounds = 6

/** The path of a URI in an answer. */
const pathOf = (uri: string): string =>
  uri.startsWith(service.base) ? uri.slice(service.base.length) : uri

/** Sends to the nodes in turn; fails for another status than expected. */
const change = async (
  status: number,
  method: string,
  uri: string,
  options: Sending = {}
): Promise<Answered> => {
  const { nodes } = service
  const node = nodes[turn++ % nodes.length] ?? ""
  const answered = await service.send(method, node + pathOf(uri), options)
  expect([method, uri, answered.status, answered.status === status ? "" : answered.text])
    .toEqual([method, uri, status, ""])
  return answered
}

/** Reads at all nodes concurrently. */
const everywhere = (uri: string, options: Sending = {}): Promise<ReadonlyArray<Answered>> =>
  Promise.all(service.nodes.map((node) => service.send("GET", node + pathOf(uri), options)))

const expectEverywhere = async (status: number, uri: string, options: Sending = {}) => {
  const all = await everywhere(uri, options)
  expect([uri, ...all.map((one) => one.status)]).toEqual([uri, ...all.map(() => status)])
  return all
}

/** Whether each node's list has an entry of this URI. */
const listed = async (list: string, entry: string, href: string, options: Sending = {}) => {
  const all = await expectEverywhere(200, list, options)
  return all.map(({ xml }) =>
    childrenOf(xml, entry).some(({ attributes }) => pathOf(attributes["href"] ?? "") === href)
  )
}

const everyNode = (value: boolean) => service.nodes.map(() => value)
const each = (test: (round: number) => Promise<void>) => async () => {
  for (let round = 0; round < rounds; round += 1) await test(round)
}
const deposit = (text: string): string =>
  `<notification><item><description>${text}</description>` +
  `<url>http://example.org/${text}</url></item></notification>`

describe("what one node acknowledged, any other shows at once", () => {
  it(
    "accounts, tokens, and that they are gone",
    each(async (round) => {
      const name = `acc${round}`
      const body = `<account><name>${name}</name></account>`
      const created = await change(201, "POST", "/accounts", { basic: admin, body })
      const first = `${name}:${created.child("token")}`
      await expectEverywhere(200, `/accounts/${name}`, { basic: first })
      const other = await change(201, "POST", `/accounts/${name}/token`, { basic: first })
      const second = `${name}:${other.xml.children.join("")}`
      await expectEverywhere(200, `/accounts/${name}`, { basic: second })
      const revoked = other.header("location")
      await change(204, "DELETE", revoked, { basic: first })
      await expectEverywhere(401, `/accounts/${name}`, { basic: second })
      await change(204, "DELETE", `/accounts/${name}`, { basic: admin })
      await expectEverywhere(401, `/accounts/${name}`, { basic: first })
    })
  )

  it(
    "mailboxes, what is in them, their secrets, and that they are gone",
    each(async (round) => {
      const body = `<mailbox><name>box${round}</name></mailbox>`
      const box = `/mailboxes/box${round}`
      const created = await change(201, "POST", "/mailboxes", { basic: admin, body })
      expect(await listed("/mailboxes", "mailbox", box, { basic: admin })).toEqual(everyNode(true))
      const basic = `reader:${created.child("password")}`
      const [before] = await expectEverywhere(200, box, { basic })
      const stored = await change(202, "POST", box, { body: deposit(`d${round}`) })
      const entry = pathOf(stored.header("location"))
      // No node confirms the earlier entity tag.
      const headers = { "If-None-Match": before?.etag ?? "" }
      const fresh = await expectEverywhere(200, box, { basic, headers })
      for (const { text } of fresh) expect(text).toContain(`d${round}`)
      await change(204, "DELETE", entry, { basic })
      expect(await listed(box, "notification", entry, { basic })).toEqual(everyNode(false))
      await expectEverywhere(410, entry, { basic })
      const renewed = await change(200, "POST", `${box}/password`, { basic: admin })
      await expectEverywhere(200, box, { basic: `reader:${renewed.child("password")}` })
      const repeated = await service.send("GET", box, { basic })
      expect(repeated.status).toBe(401)
      await change(204, "DELETE", box, { basic: admin })
      await expectEverywhere(410, box, { basic: admin })
      expect(await listed("/mailboxes", "mailbox", box, { basic: admin })).toEqual(everyNode(false))
    })
  )

  it(
    "sessions and their answers",
    each(async (round) => {
      const body = `<answer continue="true">It is ${round}.</answer>`
      const begun = await change(201, "POST", "/sessions", { body })
      const session = pathOf(begun.header("location"))
      expect(await listed("/sessions", "session", session)).toEqual(everyNode(true))
      const name = `<answer>Galahad ${round}</answer>`
      await change(201, "PUT", `${session}/name`, { body: name })
      for (const { text } of await expectEverywhere(200, `${session}/name`)) {
        expect(text).toContain(`Galahad ${round}`)
      }
      await change(204, "DELETE", session)
      await expectEverywhere(410, session)
      expect(await listed("/sessions", "session", session)).toEqual(everyNode(false))
    })
  )

  it(
    "content, overwritten and removed, with any cached copy of a client",
    each(async (round) => {
      const type = "text/plain"
      const published = await change(202, "POST", "/content", { body: `first ${round}`, type })
      const content = pathOf(published.header("location"))
      const edit = pathOf(/<([^>]*)>; rel="?edit/.exec(published.header("link"))?.[1] ?? "")
      const [shown] = await expectEverywhere(200, content)
      const known = shown?.etag ?? ""
      await expectEverywhere(304, content, { headers: { "If-None-Match": known } })
      await change(204, "PUT", edit, { body: `second ${round}`, type })
      for (
        const headers of [{ "If-None-Match": known }, { "If-Range": known, Range: "bytes=0-3" }]
      ) {
        const all = await expectEverywhere(200, content, { headers })
        expect(all.map(({ text }) => text)).toEqual(service.nodes.map(() => `second ${round}`))
      }
      const receipt = "<receipt status=\"received\"/>"
      await change(202, "POST", content, { body: receipt })
      for (const { xml } of await expectEverywhere(200, `${edit}/receipts`)) {
        expect(childrenOf(xml, "receipt")).toHaveLength(1)
      }
      await change(204, "DELETE", edit)
      await expectEverywhere(410, content)
    })
  )

  it(
    "outgoing notifications, and that they are deleted",
    each(async (round) => {
      const to = "<to>http://127.0.0.1:1/nobody</to>"
      const body = deposit(`o${round}`).replace("<item>", `${to}<item>`)
      const queued = await change(202, "POST", "/outgoing/admin", { basic: admin, body })
      const sent = pathOf(queued.header("location"))
      const list = () => listed("/outgoing/admin", "notification", sent, { basic: admin })
      expect(await list()).toEqual(everyNode(true))
      await expectEverywhere(200, sent, { basic: admin })
      await change(204, "DELETE", sent, { basic: admin })
      await expectEverywhere(410, sent, { basic: admin })
      expect(await list()).toEqual(everyNode(false))
    })
  )

  it(
    "cabinets, registrations and keyed requests",
    each(async (round) => {
      const name = `cab${round}`
      const headers = { "Idempotency-Key": `"key ${round}"` }
      const body = `<mailbox><name>${name}</name></mailbox>`
      const answers: Array<string> = []
      for (const _ of service.nodes) {
        answers.push(
          (await change(201, "POST", "/mailboxes", { basic: admin, body, headers })).text
        )
      }
      expect(new Set(answers).size).toBe(1)
      const cabinet = `<cabinet><title>one</title><mailbox href="/mailboxes/${name}"/></cabinet>`
      const created = await change(201, "POST", "/cabinets", { basic: admin, body: cabinet })
      const href = pathOf(created.header("location"))
      await change(202, "POST", `/mailboxes/${name}`, { body: deposit(`c${round}`) })
      for (const { text } of await expectEverywhere(200, href, { basic: admin })) {
        expect(text).toContain(`c${round}`)
      }
      await change(204, "DELETE", href, { basic: admin })
      await expectEverywhere(410, href, { basic: admin })
      const wish = "<registration><callback>http://127.0.0.1:1/none</callback></registration>"
      const list = `/mailboxes/${name}/registrations`
      const registered = await change(201, "POST", list, { basic: admin, body: wish })
      const registration = pathOf(registered.header("location"))
      const found = () => listed(list, "registration", registration, { basic: admin })
      expect(await found()).toEqual(everyNode(true))
      await change(204, "DELETE", registration, { basic: admin })
      expect(await found()).toEqual(everyNode(false))
      await expectEverywhere(410, registration, { basic: admin })
    })
  )
})
