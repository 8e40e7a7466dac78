/** Event streams and long polls end with the credentials that opened them (protocol §7). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../../http/formats/xml/index.ts"
import { notification } from "./mailbox-harness.ts"
import { type OutgoingHarness, type Receiver, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"
import { stream } from "./streams.ts"

let service: OutgoingHarness
let receiver: Receiver
let alice = ""
/** A mailbox of alice. */
let inbox = ""
/** An outgoing notification of alice. */
let sent = ""

beforeAll(async () => {
  receiver = await startReceiver()
  service = await startOutgoing({ openAnswers: { recheckMs: 100 } })
  alice = await service.account("alice")
  const body = "<mailbox><name>alice-in</name></mailbox>"
  inbox = (await service.send("POST", "/mailboxes", { basic: alice, body })).header("location")
  sent = (await service.post(alice, [`${receiver.base}/410/inbox`])).header("location")
  await service.until(sent, alice, "failed")
})
afterAll(async () => {
  await service.close()
  await receiver.close()
})

/** Another token of alice. */
const issue = async () => {
  const { status, xml } = await service.send("POST", "/accounts/alice/token", { basic: alice })
  expect(status).toBe(201)
  return { basic: `alice:${textOf(xml)}`, href: xml.attributes["href"] ?? "" }
}

const revoke = async (href: string): Promise<void> => {
  expect((await service.send("DELETE", href, { basic: alice })).status).toBe(204)
}

/** Signs alice in; the Cookie field of that browser. */
const signIn = async (): Promise<string> => {
  const { basic } = await issue()
  const token = basic.slice("alice:".length)
  const answered = await service.send("POST", "/sign-in", {
    headers: { "Sec-Fetch-Site": "same-origin" },
    body: new URLSearchParams({ account: "alice", token }).toString(),
    type: "application/x-www-form-urlencoded",
    accept: "text/html"
  })
  expect(answered.status).toBe(303)
  return answered.header("set-cookie").split(";")[0] ?? ""
}

const signOut = async (cookie: string): Promise<void> => {
  const answered = await service.send("POST", "/sign-out", {
    headers: { Cookie: cookie, "Sec-Fetch-Site": "same-origin" }
  })
  expect(answered.status).toBe(303)
}

type Live = Awaited<ReturnType<typeof stream>>

/** Reads the events until the end of the stream. */
const untilEnd = async (live: Live): Promise<void> => {
  while (await live.next() !== undefined) continue
}

describe("an event stream", () => {
  it("ends when its token is revoked, and that of another token goes on", async () => {
    const { basic, href } = await issue()
    const others = await stream(inbox, alice)
    const live = [await stream(inbox, basic), await stream(sent, basic)]
    expect(live.map(({ response }) => response.status)).toEqual([200, 200])
    await revoke(href)
    for (const one of live) await untilEnd(one)
    expect((await service.send("GET", inbox, { basic })).status).toBe(401)
    const body = notification("later")
    await service.send("POST", inbox, { body, type: "text/xml+rss" })
    expect((await others.next())?.data).toContain("later")
    others.close()
  })

  it("ends when its browser signs out", async () => {
    const cookie = await signIn()
    const headers = { cookie, "sec-fetch-site": "same-origin" }
    const live = [await stream(inbox, "", headers), await stream(sent, "", headers)]
    expect(live.map(({ response }) => response.status)).toEqual([200, 200])
    await signOut(cookie)
    for (const one of live) await untilEnd(one)
  })
})

describe("a long poll", () => {
  it("is refused when its token is revoked, or its browser signs out", async () => {
    const { basic, href } = await issue()
    const cookie = await signIn()
    const since = (await service.send("GET", inbox, { basic: alice })).xml.attributes["time"] ?? ""
    const { etag } = await service.send("GET", sent, { basic: alice })
    const wait = { Prefer: "wait=60" }
    const byCookie = { Cookie: cookie, "Sec-Fetch-Site": "same-origin" }
    const poll = (headers: Readonly<Record<string, string>>, credentials: { basic?: string }) => [
      service.send("GET", `${inbox}?since=${since}`, {
        ...credentials,
        headers: { ...wait, ...headers }
      }),
      service.send("GET", sent, {
        ...credentials,
        headers: { ...wait, "If-None-Match": etag, ...headers }
      })
    ]
    const polls = [...poll({}, { basic }), ...poll(byCookie, {})]
    await revoke(href)
    await signOut(cookie)
    expect((await Promise.all(polls)).map(({ status }) => status)).toEqual([401, 401, 401, 401])
  })
})
