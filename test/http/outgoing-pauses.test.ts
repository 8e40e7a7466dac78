/** Pausing and resuming the relays of an outgoing mailbox (protocol §1.3). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { pausedOriginsMax, pausesFormat } from "../../actors/index.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { upgradeRetrySeconds } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { address } from "../../runtime/index.ts"
import { type Answered, startService } from "./harness.ts"
import { repeatLost } from "./lost-replies.ts"
import { admin, each, outgoing, type OutgoingHarness, pathOf, type Receiver, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"
import { quarantineActor } from "./quarantined-actor.ts"

const formType = "application/x-www-form-urlencoded"

let service: OutgoingHarness
let receiver: Receiver
let other: Receiver
let alice = ""
let accounts = 0

beforeAll(async () => {
  service = await startOutgoing()
})
afterAll(() => service.close())
beforeEach(async () => {
  alice = await service.account(`alice-${accounts++}`)
  receiver = await startReceiver()
  other = await startReceiver()
  return async () => {
    await receiver.close()
    await other.close()
  }
})

const pausesOf = (): string => `${pathOf(alice)}/pauses`

const paused = (status: "active" | "paused", ...origins: ReadonlyArray<string>): string =>
  `<pauses status="${status}">${origins.map((one) => `<pause origin="${one}"/>`).join("")}</pauses>`

const put = (body: string, basic = alice, headers = {}): Promise<Answered> =>
  service.send("PUT", pausesOf(), { basic, body, headers })

const sent = async (...to: ReadonlyArray<string>): Promise<string> => {
  const posted = await service.post(alice, to)
  expect(posted.status).toBe(202)
  return posted.header("location")
}

const statusOf = (href: string): Promise<Answered> => service.send("GET", href, { basic: alice })

/** Waits until as many recipients of the notification are held back. */
const untilHeld = async (href: string, count = 1): Promise<Answered> => {
  for (;;) {
    const got = await statusOf(href)
    const held = each(got, "paused").filter((since) => since !== undefined)
    if (held.length === count) return got
  }
}

describe("a paused outgoing mailbox", () => {
  it("accepts what is sent, makes no attempt, and sends it all when it is resumed", async () => {
    const before = await put(paused("paused"))
    expect(before.status).toBe(200)
    expect(before.xml.attributes).toMatchObject({ status: "paused", since: expect.anything() })
    const first = await sent(`${receiver.base}/1`, `${receiver.base}/2`)
    const second = await sent(`${other.base}/3`)
    const held = await untilHeld(first, 2)
    await untilHeld(second)
    expect([each(held, "status"), each(held, "attempts")])
      .toEqual([["waiting", "waiting"], ["0", "0"]])
    expect([receiver.received, other.received]).toEqual([[], []])
    const listed = await service.send("GET", pathOf(alice), { basic: alice })
    expect(listed.xml.attributes["paused"]).toBe(before.xml.attributes["since"])

    expect((await put(paused("active"))).xml.attributes).not.toHaveProperty("since")
    for (const href of [first, second]) await service.until(href, alice, "sent")
    expect(receiver.received.map(({ path }) => path).toSorted()).toEqual(["/1", "/2"])
    expect(other.received).toHaveLength(1)
    expect(each(await statusOf(first), "paused")).toEqual([undefined, undefined])
  })

  it("takes no more than the quota of its account, and takes more after its end", async () => {
    const small = await startOutgoing({ quotas: { accountBytesMax: 20_000 } })
    try {
      const bob = await small.account("bob")
      const putSmall = (body: string) =>
        small.send("PUT", "/outgoing/bob/pauses", { basic: bob, body })
      await putSmall(paused("active", receiver.base))
      const big = "d".repeat(12_000)
      const post = (to: string) =>
        small.send("POST", "/outgoing/bob", { basic: bob, body: outgoing([to], big) })
      const first = await post(`${receiver.base}/1`)
      expect(first.status).toBe(202)
      const refused = await post(`${receiver.base}/2`)
      expect([refused.status, refused.xml.name]).toEqual([507, "problem"])
      expect(refused.child("type")).toBe(`${small.base}/problems/quota-exceeded`)
      const detail = refused.child("detail")
      expect(detail).toContain("what waits for a pause in the outgoing mailbox of bob uses")
      expect(detail).toContain("end all pauses at /outgoing/bob/pauses")
      expect([refused.child("quota"), refused.child("max-bytes")]).toEqual(["outgoing", "20000"])
      const listed = await small.send("GET", "/outgoing/bob", { basic: bob })
      expect(childrenOf(listed.xml, "notification")).toHaveLength(1)
      // A replacement would wait, too; a relay that no pause keeps back takes none of the room.
      const replaced = await small.send("POST", `${first.header("location")}/replacement`, {
        basic: bob,
        body: outgoing([], big)
      })
      expect(replaced.status).toBe(507)
      expect((await post(`${other.base}/3`)).status).toBe(202)
      await putSmall(paused("active"))
      await small.until(first.header("location"), bob, "sent")
      await expect.poll(async () => {
        await putSmall(paused("active", receiver.base))
        const { status } = await post(`${receiver.base}/4`)
        await putSmall(paused("active"))
        return status
      }, { timeout: 20_000 }).toBe(202)
    } finally {
      await small.close()
    }
  })

  it("has room for the repetition of a replacement whose answer was lost", async () => {
    const small = await startOutgoing({ quotas: { accountBytesMax: 20_000 } })
    try {
      const bob = await small.account("bob")
      const basic = { basic: bob }
      await small.send("PUT", "/outgoing/bob/pauses", { ...basic, body: paused("paused") })
      const sent = await small.send("POST", "/outgoing/bob", {
        ...basic,
        body: outgoing([`${receiver.base}/1`])
      })
      const sending = { ...basic, body: outgoing([], "d".repeat(12_000)) }
      const path = `${sent.header("location")}/replacement`
      const repeated = await repeatLost(
        small,
        { key: "replacement", path, sending },
        { message: "FollowUp", isKept: true },
        () => Promise.resolve()
      )
      expect(repeated.status).toBe(202)
    } finally {
      await small.close()
    }
  })

  it("holds back deliveries to mailboxes of the service, too", async () => {
    const name = `box-${accounts}`
    await service.send("POST", "/mailboxes", { basic: alice, headers: { Slug: name } })
    const box = `/mailboxes/${name}`
    await put(paused("paused"))
    const href = await sent(`${service.base}${box}`)
    await untilHeld(href)
    const empty = await service.send("GET", box, { basic: alice })
    expect(childrenOf(empty.xml, "notification")).toEqual([])
    await put(paused("active"))
    await service.until(href, alice, "sent")
    const full = await service.send("GET", box, { basic: alice })
    expect(childrenOf(full.xml, "notification")).toHaveLength(1)
  })

  it("holds back neither another account, nor what is withdrawn meanwhile", async () => {
    await put(paused("paused"))
    const bob = await service.account(`bob-${accounts}`)
    const posted = await service.post(bob, [`${receiver.base}/bob`])
    await service.until(posted.header("location"), bob, "sent")
    const href = await sent(`${receiver.base}/alice`)
    await untilHeld(href)
    await service.send("POST", `${href}/withdrawal`, { basic: alice })
    await service.until(href, alice, "sent")
    await put(paused("active"))
    expect(receiver.received.map(({ path }) => path)).toEqual(["/bob"])
  })

  it("has a button on its page, and says so there", async () => {
    const headers = { Accept: "text/html", Origin: service.base }
    const page = () =>
      service.send("GET", pathOf(alice), { basic: alice, headers: { Accept: "text/html" } })
    expect((await page()).text).toContain(">Pause</button>")
    const body = "method=put&status=paused&origin=https%3A%2F%2Fa.example"
    const posted = await service.send("POST", pausesOf(), {
      basic: alice,
      type: formType,
      headers,
      body
    })
    expect([posted.status, posted.header("location")])
      .toEqual([303, `${service.base}${pausesOf()}`])
    const { text } = await page()
    expect(text).toContain("<strong>Paused</strong> since ")
    expect(text).toContain(">Resume</button>")
    // The button keeps the origins that are paused.
    expect(text).toContain("name=\"origin\" value=\"https://a.example\"")
    const own = await service.send("GET", pausesOf(), { basic: alice, headers })
    expect(own.text).toContain("https://a.example</p>")
  })
})

describe("a paused origin", () => {
  it("is passed by the relays to others, and gets its own when it is resumed", async () => {
    const answered = await put(paused("active", `${receiver.base}/`))
    expect(childrenOf(answered.xml, "pause").map(({ attributes }) => attributes["origin"]))
      .toEqual([receiver.base])
    const href = await sent(`${receiver.base}/down`, `${other.base}/up`)
    const held = await untilHeld(href)
    expect(each(held, "href")[0]).toBe(`${receiver.base}/down`)
    expect(each(held, "paused")[1]).toBeUndefined()
    await expect.poll(() => other.received.length).toBe(1)
    expect(receiver.received).toEqual([])
    await put(paused("active"))
    await service.until(href, alice, "sent")
    expect(receiver.received).toHaveLength(1)
    expect(other.received).toHaveLength(1)
  })

  it("is no path, no other scheme, and one of a bounded number", async () => {
    const many = Array.from({ length: pausedOriginsMax + 1 }, (_, at) => `https://${at}.example`)
    const faults = [
      paused("active", "https://a.example/inbox"),
      paused("active", "https://u:secret@a.example"),
      paused("active", "ftp://a.example"),
      paused("active", ...many),
      "<pauses status=\"asleep\"/>",
      "<pauses><pause/></pauses>",
      "<pauses><origin>https://a.example</origin></pauses>"
    ]
    for (const body of faults) {
      const { status, text } = await put(body)
      expect(status, body).toBe(422)
      expect(text).not.toContain("secret")
    }
    expect((await put(paused("paused", ...many.slice(1)))).status).toBe(200)
  })
})

describe("the pauses of an outgoing mailbox", () => {
  it("are left out of its listing while its actor is in quarantine, which lists all", async () => {
    const href = await sent(`${receiver.base}/1`)
    await service.until(href, alice, "sent")
    const name = pathOf(alice).slice("/outgoing/".length)
    await quarantineActor(service, address("outgoing-mailbox", name))
    expect((await service.send("GET", pausesOf(), { basic: alice })).status).toBe(503)
    for (const accept of ["application/xml", "text/html"]) {
      const listed = await service.send("GET", pathOf(alice), { basic: alice, accept })
      expect([listed.status, listed.text]).toEqual([
        200,
        expect.stringContaining(new URL(href).pathname)
      ])
    }
    // What is sent meanwhile is accepted, and waits until somebody knows the pauses.
    expect((await service.post(alice, [`${receiver.base}/2`])).status).toBe(202)
  })

  it("are for the account and admins only", async () => {
    const bob = await service.account(`bob-${accounts}`)
    const unknown = "/outgoing/nobody-here/pauses"
    for (const method of ["GET", "PUT"]) {
      const body = method === "GET" ? {} : { body: paused("paused") }
      const status = async (path: string, basic?: string) =>
        (await service.send(method, path, { ...basic === undefined ? {} : { basic }, ...body }))
          .status
      expect(await status(pausesOf())).toBe(401)
      expect(await status(pausesOf(), bob)).toBe(403)
      expect(await status(unknown, bob)).toBe(403)
      expect(await status(unknown, admin)).toBe(404)
      expect(await status(pausesOf(), admin)).toBe(200)
    }
  })

  it("are replaced as they were read, or not at all", async () => {
    const read = await service.send("GET", pausesOf(), { basic: alice })
    const tag = { "If-Match": read.header("etag") }
    expect((await put(paused("paused"), alice, tag)).status).toBe(200)
    expect((await put(paused("active", "https://a.example"), alice, tag)).status).toBe(412)
    // What was read can be written as it is.
    const now = await service.send("GET", pausesOf(), { basic: alice })
    const again = await put(now.text, alice, { "If-Match": now.header("etag") })
    expect([again.status, again.text]).toEqual([200, now.text])
  })

  it("stay as they are when a form is sent whose page is not the last", async () => {
    const version = async () => {
      const { text } = await service.send("GET", pausesOf(), { basic: alice, accept: "text/html" })
      return /name="version" value="(\d+)"/.exec(text)?.[1]
    }
    const old = await version()
    await put(paused("active", "https://a.example"))
    const form = (shown: string | undefined) =>
      service.send("POST", pausesOf(), {
        basic: alice,
        type: formType,
        body: `method=put&status=active&version=${shown}`
      })
    expect((await form(old)).status).toBe(412)
    const read = await service.send("GET", pausesOf(), { basic: alice })
    expect(read.text).toContain("https://a.example")
    expect((await form(await version())).status).toBe(200)
  })

  it("are not changed back by the repetition of a request whose answer was lost", async () => {
    const body = "method=put&status=paused"
    const answered = await repeatLost(
      service,
      { key: "pause", path: pausesOf(), sending: { basic: alice, type: formType, body } },
      { message: "Replace", isKept: true },
      () => put(paused("active"))
    )
    expect(answered.status).toBe(409)
    const read = await service.send("GET", pausesOf(), { basic: alice })
    expect(read.xml.attributes["status"]).toBe("active")
  })

  it("end with the account", async () => {
    const name = pathOf(alice).slice("/outgoing/".length)
    await put(paused("paused", "https://a.example"))
    await service.send("DELETE", `/accounts/${name}?owned=delete`, { basic: admin })
    expect((await service.send("GET", pausesOf(), { basic: admin })).status).toBe(410)
  })
})

describe("a pause while a node of an earlier version is in the cluster", () => {
  it("is 503 until all are upgraded, and nothing is paused", async () => {
    const older = await startService((one) =>
      resourceTable({ ...one, system: { ...one.system, format: () => pausesFormat - 1 } })
    )
    try {
      const path = "/outgoing/admin/pauses"
      const answer = await older.send("PUT", path, { basic: admin, body: paused("paused") })
      expect([answer.status, answer.header("retry-after")])
        .toEqual([503, String(upgradeRetrySeconds)])
      const { xml } = await older.send("GET", path, { basic: admin })
      expect(xml.attributes["status"]).toBe("active")
    } finally {
      await older.close()
    }
  })
})
