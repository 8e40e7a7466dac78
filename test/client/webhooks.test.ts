/** Pushes: their signatures by other implementations, and real pushes of the service. */
import { createHmac } from "node:crypto"
import { Webhook } from "standardwebhooks"
import { afterAll, beforeAll, expect, it } from "vitest"
import { InvalidSignature, type Push, pushReceiver, RestanteError, UnexpectedAnswer, verifyHubPush,
  verifyHubSignature, verifyPush, verifySignature } from "../../client/index.ts"
import { closeReceivers, type Received, receiver } from "../e2e/receivers.ts"
import { type Here, rejection, startHere } from "./services.ts"

const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`
const other = `whsec_${Buffer.from("fedcba9876543210fedcba9876543210").toString("base64")}`
const mailbox = "http://post.test/mailboxes/alice"
const body = `<?xml version="1.0" encoding="UTF-8"?>\n<changed mailbox="${mailbox}" ` +
  `time="2030-01-01T00:00:00.000000000000002Z"><notification href="${mailbox}/notifications/1" ` +
  `received="2030-01-01T00:00:00.000Z"><item><description>Grüße</description>` +
  `<url>http://x.test/</url></item></notification><removed href="${mailbox}/notifications/0"/>` +
  `</changed>`
const now = new Date("2030-01-01T00:00:00Z")
const nowMs = now.getTime()

const signed = (by: string, text = body, at = now) => ({
  "webhook-id": "msg_1",
  "webhook-timestamp": `${Math.floor(at.getTime() / 1000)}`,
  "webhook-signature": new Webhook(by).sign("msg_1", at, text)
})
const faultOf = async (verifying: Promise<unknown>): Promise<string> => {
  const error = await rejection(verifying)
  expect(error).toBeInstanceOf(InvalidSignature)
  return error instanceof InvalidSignature ? error.fault : ""
}

it("accepts signatures of standardwebhooks, in each form of a request", async () => {
  const headers = signed(secret)
  const push = await verifyPush({ headers, body }, secret, { nowMs })
  expect(push).toMatchObject({
    id: "msg_1",
    mailbox,
    cursor: "2030-01-01T00:00:00.000000000000002Z",
    notifications: [{ description: "Grüße", url: "http://x.test/" }],
    removed: [`${mailbox}/notifications/0`],
    deleted: false,
    test: false
  })
  const bytes = new TextEncoder().encode(body)
  const forms = [
    new Request("http://callback.test/", { method: "POST", headers, body }),
    { headers: new Headers(headers), body: bytes },
    { headers: { "Webhook-Id": "msg_1", ...headers, cookie: undefined }, body: bytes.buffer },
    { headers: Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, [v]])), body }
  ]
  for (const form of forms) expect(await verifyPush(form, secret, { nowMs })).toEqual(push)
})

it("accepts either secret while they change, among signatures of other versions", async () => {
  const both = {
    ...signed(secret),
    "webhook-signature": `v1a,AAAA v1,??? ${signed(other)["webhook-signature"]} ${
      signed(secret)["webhook-signature"]
    }`
  }
  for (const accepted of [secret, other, [other, secret], secret.slice("whsec_".length)]) {
    expect((await verifyPush({ headers: both, body }, accepted, { nowMs })).mailbox).toBe(mailbox)
  }
  expect(await faultOf(verifyPush({ headers: signed(other), body }, [], { nowMs }))).toBe("wrong")
})

it("refuses the same as standardwebhooks", async () => {
  const headers = signed(secret)
  const late = new Date(nowMs + 5 * 60_000 + 1000)
  const cases: ReadonlyArray<[string, Record<string, string>, string, number]> = [
    ["wrong", signed(other), body, nowMs],
    ["wrong", headers, `${body} `, nowMs],
    ["wrong", { ...headers, "webhook-id": "msg_2" }, body, nowMs],
    ["wrong", { ...headers, "webhook-signature": "v1," }, body, nowMs],
    [
      "wrong",
      { ...headers, "webhook-signature": headers["webhook-signature"].slice(3) },
      body,
      nowMs
    ],
    ["stale", headers, body, late.getTime()],
    ["stale", signed(secret, body, late), body, nowMs],
    ["malformed", { ...headers, "webhook-timestamp": "soon" }, body, nowMs],
    ["missing", { ...headers, "webhook-signature": "" }, body, nowMs]
  ]
  for (const [fault, fields, text, atMs] of cases) {
    expect(await faultOf(verifyPush({ headers: fields, body: text }, secret, { nowMs: atMs })))
      .toBe(fault)
    if (atMs === nowMs && fault !== "stale") {
      expect(() => new Webhook(secret).verify(text, fields)).toThrow()
    }
  }
  const relaxed = { nowMs: late.getTime(), toleranceMs: 6 * 60_000 }
  expect((await verifyPush({ headers, body }, secret, relaxed)).id).toBe("msg_1")
  await expect(verifyPush({ headers, body }, "whsec_", { nowMs })).rejects.toThrow(TypeError)
})

it("verifies any body, and reports a signed body that is no push", async () => {
  const text = "{\"a\":1}"
  const headers = signed(secret, text)
  const verified = await verifySignature({ headers, body: text }, secret, { nowMs })
  expect(new TextDecoder().decode(verified.body)).toBe(text)
  expect(await rejection(verifyPush({ headers, body: text }, secret, { nowMs })))
    .toBeInstanceOf(RestanteError)
})

it("verifies X-Hub-Signature", async () => {
  const hub = (key: string, text: string = body) => ({
    "x-hub-signature": `sha256=${createHmac("sha256", key).update(text).digest("hex")}`
  })
  const secrets = ["old", "geheim ü"]
  const entry = /<notification .*<\/notification>/s.exec(body)?.[0] ?? ""
  const time = "2026-01-01T00:00:00.000000000000007Z"
  const topic = `<mailbox href="http://post.test/mailboxes/a" title="A" time="${time}">${entry}` +
    "</mailbox>"
  const json = JSON.stringify({
    href: "http://post.test/mailboxes/a",
    time,
    notification: [{
      href: "http://post.test/n",
      received: time,
      item: { description: "one", url: "http://x.test/" }
    }]
  })
  for (const text of [topic, json]) {
    const push = await verifyHubPush({ headers: hub("geheim ü", text), body: text }, secrets)
    expect(push).toMatchObject({ mailbox: "http://post.test/mailboxes/a", cursor: time })
    expect(push.notifications).toHaveLength(1)
  }
  const feed = "<feed/>"
  const ofFeed = { headers: hub("geheim ü", feed), body: feed }
  expect(new TextDecoder().decode(await verifyHubSignature(ofFeed, secrets))).toBe(feed)
  expect(await rejection(verifyHubPush(ofFeed, secrets))).toBeInstanceOf(UnexpectedAnswer)
  expect(await faultOf(verifyHubPush({ headers: hub("x"), body }, "y"))).toBe("wrong")
  expect(await faultOf(verifyHubPush({ headers: {}, body }, "y"))).toBe("missing")
  const sha1 = { "x-hub-signature": "sha1=0000" }
  expect(await faultOf(verifyHubPush({ headers: sha1, body }, "y"))).toBe("malformed")
})

let here: Here
beforeAll(async () => {
  here = await startHere()
})
afterAll(async () => {
  closeReceivers()
  await here.close()
})

const requestOf = ({ body, headers, method, path }: Received): Request =>
  new Request(`http://callback.test${path}`, {
    method,
    headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
    ...method === "POST" ? { body } : {}
  })

it("receives all changes in order, over a failure and a new secret", async () => {
  const { href, mailbox } = await here.admin.openMailbox()
  const pushes: Array<Push> = []
  const received: Array<Received> = []
  const secrets: Array<string> = []
  const statuses: Array<number> = []
  let failing = true
  const handle = pushReceiver({
    secrets: () => secrets,
    mailboxes: href,
    onPush: (push) => {
      if (failing) throw new Error("not now")
      pushes.push(push)
    }
  })
  const callback = await receiver((one, response) => {
    if (one.method === "POST") received.push(one)
    const respond = async () => {
      const answer = await handle(requestOf(one))
      statuses.push(answer.status)
      response.writeHead(answer.status).end(await answer.text())
    }
    respond().catch(() => response.destroy())
  })
  const { registration, secret, state } = await mailbox.register({ callback })
  expect(state).toMatchObject({ status: "unverified", form: "native", callback })
  secrets.push(secret)
  expect(await registration.wait()).toMatchObject({ status: "active" })
  await mailbox.deposit({ description: "one", url: "http://x.test/" })
  await until(() => statuses.includes(500))
  failing = false
  await registration.lift()
  await until(() => pushes.flatMap(({ notifications }) => notifications).length === 1)
  const renewed = await registration.renewSecret()
  const [first] = (await mailbox.read()).notifications
  await mailbox.remove(first?.href ?? "")
  await mailbox.deposit({ description: "two", url: "http://x.test/" })
  secrets.splice(0, 1, renewed)
  await until(() => pushes.flatMap(({ notifications }) => notifications).length === 2)
  const notifications = pushes.flatMap(({ notifications }) => notifications)
  expect(notifications.map(({ description }) => description)).toEqual(["one", "two"])
  expect(pushes.flatMap(({ removed }) => removed)).toEqual([first?.href])
  const last = received.at(-1)
  if (last === undefined) throw new Error("nothing was pushed")
  const fields = Object.fromEntries(Object.entries(last.headers).map(([k, v]) => [k, String(v)]))
  // For a while the old secret signs, too.
  for (const accepted of [secret, renewed]) {
    expect((await verifyPush(last, accepted)).id).toBe(fields["webhook-id"])
  }
  const after = { after: pushes.at(-1)?.cursor }
  expect((await mailbox.read(after)).notifications).toEqual([])
  const { length: before } = pushes
  expect(await registration.pause()).toMatchObject({ status: "paused" })
  expect(await registration.replay("2020-01-01T00:00:00Z")).toMatchObject({ status: "active" })
  await until(() => pushes.length > before)
  expect(pushes.at(-1)?.notifications).toMatchObject([{ description: "two" }])
  const tested = await registration.test()
  expect(tested).toMatchObject({ status: "delivered", code: 204, problem: undefined })
  expect(pushes.at(-1)).toMatchObject({ test: true, notifications: [], removed: [] })
  expect((await mailbox.read({ after: pushes.at(-1)?.cursor })).notifications).toEqual([])
  expect(await registration.state()).toMatchObject({ status: "active", test: tested })
  await registration.delete()
  expect(await mailbox.registrations()).toEqual([])
})

it("refuses other challenges, pushes and methods", async () => {
  const pushes: Array<Push> = []
  const handle = pushReceiver({
    secrets: secret,
    mailboxes: [mailbox],
    onPush: (p) => void pushes.push(p)
  })
  const challenge = (topic: string) =>
    handle(new Request(`http://c.test/?hub.mode=subscribe&hub.challenge=x%2By&hub.topic=${topic}`))
  const echoed = await challenge(encodeURIComponent(mailbox))
  expect([echoed.status, await echoed.text()]).toEqual([200, "x+y"])
  expect((await challenge("http://elsewhere.test/")).status).toBe(404)
  const post = (headers: Record<string, string>, text: string) =>
    handle(new Request("http://c.test/", { method: "POST", headers, body: text }))
  expect((await post(signed(other, body, new Date()), body)).status).toBe(401)
  const elsewhere = body.replaceAll("alice", "bob")
  expect((await post(signed(secret, elsewhere, new Date()), elsewhere)).status).toBe(404)
  expect((await handle(new Request("http://c.test/", { method: "PUT" }))).status).toBe(405)
  expect(pushes).toEqual([])
  expect((await post(signed(secret, body, new Date()), body)).status).toBe(204)
  expect(pushes).toHaveLength(1)
})

const until = async (holds: () => boolean): Promise<void> => {
  for (let n = 0; !holds(); n++) {
    if (n > 1500) throw new Error("it did not come about")
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
