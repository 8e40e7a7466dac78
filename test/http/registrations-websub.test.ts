/** The WebSub form of registrations (protocol §1.4; W3C WebSub §4, §5, §7). */
import { createHmac } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf, type Element } from "../../http/formats/xml/index.ts"
import type { Sending } from "./harness.ts"
import { owner } from "./mailbox-harness.ts"
import { broughtBy, changedOf, eventually, isActive, type Manner, registration, type Registrations,
  startRegistrations, startSubscriber, statusOf, type Subscriber } from "./registrations-harness.ts"

let service: Registrations
let subscriber: Subscriber

beforeAll(async () => {
  service = await startRegistrations()
  subscriber = await startSubscriber()
})
afterAll(async () => {
  await service.close()
  await subscriber.close()
})

const get = (href: string, options: Sending = {}) =>
  service.send("GET", href, { basic: owner, ...options })

const subscribe = (callback: string, more: Readonly<Record<string, string>> = {}) => ({
  "hub.mode": "subscribe",
  "hub.callback": callback,
  ...more
})
const unsubscribe = (callback: string) => ({
  "hub.mode": "unsubscribe",
  "hub.callback": callback
})

describe("discovery (§4)", () => {
  it("names the hub and the topic in Link and in the page", async () => {
    const { href, shared } = await service.open("found")
    const links = (await get(href)).header("link")
    expect(links).toContain(`<${href}/registrations>; rel="hub"`)
    expect(links).toContain(`<${href}>; rel="self"`)
    const head = await service.send("HEAD", href, { basic: owner })
    expect(head.header("link")).toBe(links)
    const page = (await get(href, { accept: "text/html" })).text
    expect(page).toContain(`<link rel="hub" href="${href}/registrations">`)
    expect(page).toContain(`<link rel="self" href="${href}?format=html" type="text/html">`)
    const among = (await service.send("GET", shared)).header("link")
    expect(among).toContain(`<${shared}>; rel="self"`)
    expect(among).not.toContain("hub")
  })

  it("names a hub exactly where it accepts the topic", async () => {
    const { href, shared } = await service.open("named")
    await service.deposit(href, "one")
    await service.deposit(href, "two")
    const { time } = (await get(href)).xml.attributes
    const plain = ["", "?format=html&read", "?format=atom", "?format=rss", "?format=jsonld"]
    const others = ["limit=1", "limit=1&format=atom", `since=${time}`, "before=2&format=rss"]
    const pages = [...plain.map((query) => href + query), ...others.map((one) => `${href}?${one}`)]
    const offered: Array<readonly [string, boolean]> = []
    for (const uri of [...pages, shared, `${shared}?format=atom`]) {
      const links = (await get(uri)).header("link")
      const [, topic = ""] = /<([^>]*)>; rel="self"/.exec(links) ?? []
      const request = { ...subscribe(subscriber.at("echo")), "hub.topic": topic }
      const { status } = await service.hub(href, request)
      expect([uri, links.includes("rel=\"hub\"")]).toEqual([uri, status === 202])
      offered.push([uri, status === 202])
    }
    expect(offered.filter(([, is]) => is)).toHaveLength(plain.length)
  })
})

describe("subscribing (§5)", () => {
  it("answers 202 and its URI, verifies, and pushes changes, signed", async () => {
    const { href } = await service.open("topic")
    const callback = subscriber.at("echo")
    const secret = "the subscriber's own secret"
    const asked = await service.hub(
      href,
      subscribe(callback, {
        "hub.secret": secret,
        "hub.lease_seconds": "3600",
        "hub.unknown": "is skipped"
      })
    )
    expect(asked.status).toBe(202)
    const location = asked.header("location")
    expect(location).toMatch(new RegExp(`^${href}/registrations/[A-Za-z0-9_-]{22}$`))
    expect(asked.xml.attributes).toMatchObject({ href: location, form: "websub" })
    const active = await service.until(location, isActive)
    const [challenge] = subscriber.challenges(callback)
    expect(Object.fromEntries(challenge?.query ?? [])).toEqual({
      "hub.mode": "subscribe",
      "hub.topic": href,
      "hub.challenge": expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
      "hub.lease_seconds": "3600"
    })
    const leaseMs = Date.parse(active.child("lease-until") ?? "") -
      Date.parse(active.child("last") ?? "")
    expect(leaseMs).toBe(3600_000)
    for (const { text } of [asked, active]) expect(text).not.toContain("own secret")
    const deposited = await service.deposit(href, "news")
    const [push] = await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
    expect(push === undefined ? [] : broughtBy([push])).toEqual([deposited.header("location")])
    const hmac = createHmac("sha256", secret).update(push?.body ?? "").digest("hex")
    expect(push?.headers["x-hub-signature"]).toBe(`sha256=${hmac}`)
    expect(push?.headers["webhook-signature"]).toBeUndefined()
    expect(push?.headers["link"]).toContain(`<${href}/registrations>; rel="hub"`)
    expect(push?.headers["link"]).toContain(`<${href}>; rel="self"`)
  })

  it("signs nothing without a secret", async () => {
    const { href } = await service.open("unsigned")
    const callback = subscriber.at("echo")
    const asked = await service.hub(href, subscribe(callback, { "hub.secret": "" }))
    await service.until(asked.header("location"), isActive)
    await service.deposit(href, "news")
    const [push] = await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
    expect(push?.headers["x-hub-signature"]).toBeUndefined()
  })

  it.each([
    [undefined, "864000"],
    ["1", "1"],
    ["2592000", "2592000"],
    ["9999999999999999999999", "2592000"]
  ])("asks for a lease of %s and gets %s seconds", async (wanted, granted) => {
    const { href } = await service.open(`lease-${wanted ?? "default"}`)
    const callback = subscriber.at("mute")
    const more = wanted === undefined ? {} : { "hub.lease_seconds": wanted }
    expect((await service.hub(href, subscribe(callback, more))).status).toBe(202)
    const [asked] = await eventually(
      () => subscriber.challenges(callback),
      ({ length }) => length > 0
    )
    expect(asked?.query.get("hub.lease_seconds")).toBe(granted)
  })

  it("renews an existing subscription under the same URI", async () => {
    const { href } = await service.open("renewed")
    const callback = subscriber.at("echo")
    const first = await service.hub(href, subscribe(callback))
    await service.until(first.header("location"), isActive)
    const repeated = await service.hub(href, subscribe(callback, { "hub.lease_seconds": "7200" }))
    expect([repeated.status, repeated.header("location")]).toEqual([202, first.header("location")])
    expect(statusOf(repeated)).toBe("active")
    const renewedDocument = await service.until(repeated.header("location"), (one) => {
      const until = Date.parse(one.child("lease-until") ?? "")
      return until - Date.parse(one.child("last") ?? "") === 7200_000
    })
    const [listed, ...others] = childrenOf((await get(`${href}/registrations`)).xml)
    expect(others).toEqual([])
    expect(listed?.attributes).toMatchObject({ callback, topic: href, form: "websub" })
    expect(renewedDocument.child("topic")).toBe(href)
    const other = await service.hub(href, subscribe(subscriber.at("echo")))
    expect(other.header("location")).not.toBe(first.header("location"))
  })

  it.each<[Manner, string | undefined]>([
    ["mute", "200"],
    ["refuse", "404"],
    ["moved", "302"],
    ["busy", "503"]
  ])("is not verified by a callback that is %s (§5.3)", async (manner, code) => {
    const { href } = await service.open(`unwanted-${manner}`)
    const callback = subscriber.at(manner)
    const asked = await service.hub(href, subscribe(callback))
    const current = await service.until(
      asked.header("location"),
      (one) => one.child("problem") !== undefined
    )
    expect([statusOf(current), current.child("code")]).toEqual(["unverified", code])
    // No attempt follows an answer.
    expect(current.child("next")).toBeUndefined()
    expect(subscriber.challenges(callback)).toHaveLength(1)
    expect(subscriber.challenges(new URL("/echo/moved", callback).href)).toEqual([])
  })

  it.each<Manner>(["mute", "refuse", "moved", "busy"])(
    "a renewal that the callback answers %s changes nothing",
    async (manner) => {
      const { href } = await service.open(`kept-${manner}`)
      const callback = subscriber.at("echo")
      const first = subscribe(callback, { "hub.secret": "old", "hub.lease_seconds": "3600" })
      const location = (await service.hub(href, first)).header("location")
      const active = await service.until(location, isActive)
      subscriber.change(callback, manner)
      const second = subscribe(callback, { "hub.secret": "new", "hub.lease_seconds": "7200" })
      expect((await service.hub(href, second)).status).toBe(202)
      const failed = await service.until(location, (one) => one.child("problem") !== undefined)
      expect(statusOf(failed)).toBe("active")
      expect(failed.child("lease-until")).toBe(active.child("lease-until"))
      await service.deposit(href, "news")
      const [push] = await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
      const hmac = createHmac("sha256", "old").update(push?.body ?? "").digest("hex")
      expect(push?.headers["x-hub-signature"]).toBe(`sha256=${hmac}`)
      subscriber.change(callback, "echo")
      await service.hub(href, second)
      const renewed = await service.until(
        location,
        (one) => one.child("lease-until") !== active.child("lease-until")
      )
      expect(statusOf(renewed)).toBe("active")
      await service.deposit(href, "more news")
      const [, next] = await eventually(
        () => subscriber.pushes(callback),
        ({ length }) => length > 1
      )
      const newHmac = createHmac("sha256", "new").update(next?.body ?? "").digest("hex")
      expect(next?.headers["x-hub-signature"]).toBe(`sha256=${newHmac}`)
    }
  )

  it("keeps the old secret until the callback has echoed the new one", async () => {
    const { href } = await service.open("renewing")
    const callback = subscriber.at("echo")
    const old = subscribe(callback, { "hub.secret": "old" })
    const location = (await service.hub(href, old)).header("location")
    await service.until(location, isActive)
    const release = subscriber.hold(callback)
    await service.hub(href, subscribe(callback, { "hub.secret": "new" }))
    await eventually(() => subscriber.challenges(callback), ({ length }) => length === 2)
    await service.deposit(href, "before the echo")
    const [push] = await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
    const hmac = createHmac("sha256", "old").update(push?.body ?? "").digest("hex")
    expect(push?.headers["x-hub-signature"]).toBe(`sha256=${hmac}`)
    release()
  })

  const callback = "http://example.org/cb"
  it.each<[string, Readonly<Record<string, string>>, string]>([
    ["no mode", { "hub.callback": callback }, "hub.mode"],
    ["another mode", { "hub.mode": "publish", "hub.callback": callback }, "hub.mode"],
    ["no callback", { "hub.mode": "subscribe" }, "hub.callback"],
    ["a bad callback", subscribe("ftp://example.org/"), "hub.callback"],
    ["a fragment", subscribe(`${callback}#a`), "hub.callback"],
    ["another topic", subscribe(callback, { "hub.topic": "http://example.org/" }), "hub.topic"],
    [
      "a format that the mailbox does not have",
      subscribe(callback, { "hub.topic": "http://example.org/mailboxes/topic?format=pdf" }),
      "hub.topic"
    ],
    ["an empty topic", subscribe(callback, { "hub.topic": "" }), "hub.topic"],
    ["a lease of none", subscribe(callback, { "hub.lease_seconds": "0" }), "hub.lease_seconds"],
    ["a negative one", subscribe(callback, { "hub.lease_seconds": "-1" }), "hub.lease_seconds"],
    ["a broken one", subscribe(callback, { "hub.lease_seconds": "1.5" }), "hub.lease_seconds"],
    ["a long secret", subscribe(callback, { "hub.secret": "é".repeat(100) }), "hub.secret"]
  ])("refuses %s with 422", async (_name, fields, field) => {
    const refused = await service.hub(`${service.base}/mailboxes/topic`, fields)
    expect(refused.status).toBe(422)
    expect(refused.text).toContain(field)
  })

  it("accepts only the public URI as the topic, and shows no subscriber's secret", async () => {
    const { href, shared } = await service.open("by-shared")
    const refused = await service.send("POST", `${shared}/registrations`, {
      basic: service.bob,
      type: "application/x-www-form-urlencoded",
      body: new URLSearchParams({ ...subscribe(callback), "hub.topic": shared }).toString()
    })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain(`hub.topic must be the mailbox: ${href}`)
    expect(refused.text).not.toContain("~secret")
    const plain = await service.hub(href, { ...subscribe(callback), "hub.topic": shared })
    expect(plain.status).toBe(422)
    const secret = shared.slice(shared.indexOf("~") + 1)
    for (const { text } of [refused, plain]) expect(text).not.toContain(secret)
  })

  it("refuses a secret of 200 bytes, and accepts one of 199", async () => {
    const { href } = await service.open("secrets")
    const send = (length: number) =>
      service.hub(href, subscribe(subscriber.at("mute"), { "hub.secret": "s".repeat(length) }))
    expect((await send(200)).status).toBe(422)
    expect((await send(199)).status).toBe(202)
  })
})

describe("unsubscribing (§5)", () => {
  it("is 202, then ends when the callback echoes; it may begin again", async () => {
    const { href } = await service.open("left")
    const callback = subscriber.at("echo")
    const location = (await service.hub(href, subscribe(callback))).header("location")
    await service.until(location, isActive)
    const left = await service.hub(href, unsubscribe(callback))
    expect([left.status, left.text]).toEqual([202, ""])
    expect(left.header("link")).toContain("rel=\"mailbox\"")
    await service.until(location, ({ status }) => status === 410)
    const asked = subscriber.challenges(callback).at(-1)?.query
    expect([asked?.get("hub.mode"), asked?.get("hub.topic")]).toEqual(["unsubscribe", href])
    expect((await service.hub(href, unsubscribe(callback))).status).toBe(404)
    const repeated = await service.hub(href, subscribe(callback))
    expect([repeated.status, repeated.header("location")]).toEqual([202, location])
    await service.until(location, isActive)
    await eventually(
      () => get(`${href}/registrations`),
      ({ xml }) => childrenOf(xml).length === 1
    )
  })

  it.each<readonly [Manner, string]>([
    ["stay", "200"],
    ["moved", "302"]
  ])("continues when the callback does not confirm the end: %s", async (manner, code) => {
    const { href } = await service.open(`unconfirmed-${manner}`)
    const callback = subscriber.at("echo")
    const location = (await service.hub(href, subscribe(callback))).header("location")
    await service.until(location, isActive)
    subscriber.change(callback, manner)
    expect((await service.hub(href, unsubscribe(callback))).status).toBe(202)
    await eventually(
      () => subscriber.challenges(callback),
      (all) => all.some(({ query }) => query.get("hub.mode") === "unsubscribe")
    )
    const kept = await service.until(location, (one) => one.child("problem") !== undefined)
    expect(kept.child("code")).toBe(code)
    // A redirect is not followed to a URI that echoes the challenge.
    expect(subscriber.challenges(new URL("/echo/moved", callback).href)).toEqual([])
    await service.deposit(href, "still")
    await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
    expect(statusOf(await get(location))).toBe("active")
  })

  it("is 404 for a callback that never subscribed", async () => {
    const { href } = await service.open("never")
    const refused = await service.hub(href, unsubscribe("http://example.org/other"))
    expect(refused.status).toBe(404)
    expect(refused.text).toContain("hub.callback")
  })
})

describe("a subscription", () => {
  it("has neither another callback nor a secret of the service", async () => {
    const { href } = await service.open("fixed")
    const callback = subscriber.at("echo")
    const location = (await service.hub(href, subscribe(callback))).header("location")
    const body = registration(subscriber.at("echo"))
    const moved = await service.send("PUT", location, { basic: owner, body })
    expect([moved.status, moved.text]).toEqual([
      422,
      expect.stringContaining("subscribe the other callback")
    ])
    const same = await service.send("PUT", location, { basic: owner, body: registration(callback) })
    expect(same.status).toBe(200)
    const secret = await service.send("POST", `${location}/secret`, { basic: owner })
    expect([secret.status, secret.text]).toEqual([409, expect.stringContaining("hub.secret")])
    const page = (await get(location, { accept: "text/html" })).text
    expect(page).not.toContain(`${new URL(location).pathname}/secret`)
    expect((await service.send("DELETE", location, { basic: owner })).status).toBe(204)
    expect((await get(location)).status).toBe(410)
  })

  it("that a reader of the mailbox removes is denied to its subscriber (§5.2)", async () => {
    const { href } = await service.open("denied")
    const callback = subscriber.at("echo")
    const location = (await service.hub(href, subscribe(callback))).header("location")
    await service.until(location, isActive)
    expect((await service.send("DELETE", location, { basic: owner })).status).toBe(204)
    const told = await eventually(
      () => subscriber.challenges(callback),
      (all) => all.some(({ query }) => query.get("hub.mode") === "denied")
    )
    expect(Object.fromEntries(told.at(-1)?.query ?? [])).toEqual({
      "hub.mode": "denied",
      "hub.topic": href,
      "hub.reason": "the subscription has been removed"
    })
  })

  it("ends with its lease, without a push after that", async () => {
    const { href } = await service.open("leased")
    const callback = subscriber.at("echo")
    const short = subscribe(callback, { "hub.lease_seconds": "1" })
    const location = (await service.hub(href, short)).header("location")
    await service.until(location, ({ status }) => status === 410)
    await service.deposit(href, "too late")
    expect((await service.hub(href, unsubscribe(callback))).status).toBe(404)
    await eventually(
      () => get(`${href}/registrations`),
      ({ xml }) => childrenOf(xml).length === 0
    )
    expect(subscriber.pushes(callback)).toEqual([])
  })

  it("ends when the callback answers a push with 410", async () => {
    const { href } = await service.open("left-by-410")
    const callback = subscriber.at("gone")
    const location = (await service.hub(href, subscribe(callback))).header("location")
    await service.until(location, isActive)
    await service.deposit(href, "unwanted")
    await service.until(location, ({ status }) => status === 410)
    expect(subscriber.pushes(callback)).toHaveLength(1)
  })
})

describe("the other changes of a mailbox", () => {
  it("are pushed in the native form; the mailbox's end denies a subscription", async () => {
    const { href } = await service.open("over")
    const native = subscriber.at("echo")
    const websub = subscriber.at("echo")
    const created = await service.register(href, native)
    const asked = await service.hub(href, subscribe(websub))
    for (const one of [created, asked]) await service.until(one.header("location"), isActive)
    const deposited = (await service.deposit(href, "brief")).header("location")
    await service.send("DELETE", deposited, { basic: owner })
    const changesAt = (callback: string) =>
      subscriber.pushes(callback).flatMap((push) => childrenOf(changedOf(push)))
    const isRemoved = ({ attributes, name }: Element) =>
      name === "removed" && attributes["href"] === deposited
    await eventually(() => changesAt(native), (all) => all.some(isRemoved))
    await service.send("DELETE", href, { basic: owner })
    await eventually(() => changesAt(native), (all) => all.at(-1)?.name === "deleted")
    for (const one of [created, asked]) {
      await service.until(one.header("location"), ({ status }) => status === 410)
    }
    // The topic has notifications only.
    for (const push of subscriber.pushes(websub)) {
      const { children, name } = changedOf(push)
      expect(name).toBe("mailbox")
      expect(children).toEqual([expect.objectContaining({ name: "notification" })])
    }
    const modes = () => subscriber.challenges(websub).map(({ query }) => query.get("hub.mode"))
    await eventually(modes, (all) => all.includes("denied"))
    expect(modes()).toEqual(["subscribe", "denied"])
  })
})
