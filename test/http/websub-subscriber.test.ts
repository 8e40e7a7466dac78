/** A subscriber written from the Recommendation walks through all of WebSub (protocol §1.4). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { owner } from "./mailbox-harness.ts"
import { eventually, type Registrations, startRegistrations } from "./registrations-harness.ts"
import { type Discovered, type Distributed, linksOf, type Subscription,
  WebSubSubscriber } from "./websub-subscriber.ts"

let service: Registrations
const subscriber = new WebSubSubscriber(owner)

beforeAll(async () => {
  service = await startRegistrations()
  await subscriber.listen()
})
afterAll(async () => {
  await service.close()
  await subscriber.close()
})

const whenActive = (subscription: Subscription) =>
  eventually(
    () => subscription,
    ({ pending, state }) => pending === undefined && state === "active"
  )

const contentOf = async (subscription: Subscription, count: number): Promise<Distributed> => {
  await eventually(() => subscription.content, ({ length }) => length >= count)
  const last = subscription.content[count - 1]
  if (last === undefined) throw new Error("there is no content")
  return last
}

/** How many notifications each type of content shows, and the one of the test. */
const counts: Readonly<Record<string, RegExp>> = {
  "application/xml; charset=utf-8": /<notification /g,
  "application/json": /"received"/g,
  "text/plain; charset=utf-8": /^\s+received: /gm,
  "text/html; charset=utf-8": /<li data-href=/g,
  "application/atom+xml; charset=utf-8": /<entry>/g,
  "application/rss+xml; charset=utf-8": /<item>/g,
  "application/ld+json": /\/notifications\//g
}

describe("every representation of a mailbox is a topic", () => {
  it.each(["", "?format=xml", "?format=json", "?format=text", "?format=html"].concat(
    "?format=atom",
    "?format=rss",
    "?format=jsonld"
  ))("mailbox%s: discovery, verification, content of its type, the end", async (query) => {
    const { href } = await service.open(`topic-${query.slice(query.indexOf("=") + 1) || "own"}`)
    await service.deposit(href, "there before")
    const discovered = await subscriber.discover(href + query)
    expect(discovered).toMatchObject({ topic: href + query, hub: `${href}/registrations` })
    const secret = `the secret of ${query}`
    const subscription = await subscriber.subscribe(discovered, { secret, leaseSeconds: 3600 })
    await whenActive(subscription)
    expect(subscription.leaseSeconds).toBe(3600)
    for (const text of ["first", "second"]) {
      await service.deposit(href, text)
      const content = await contentOf(subscription, text === "first" ? 1 : 2)
      expect(content.contentType).toBe(discovered.contentType)
      expect(linksOf(content)).toEqual({ hub: discovered.hub, self: discovered.topic })
      expect(content.isAuthentic).toBe(true)
      expect(content.body.match(counts[content.contentType] ?? /none/)).toHaveLength(1)
      if (query !== "?format=jsonld") expect(content.body).toContain(text)
      expect(content.body).not.toContain("there before")
      // A page elsewhere can neither use forms nor follow the live stream.
      expect(content.body).not.toMatch(/<form|data-stream/)
    }
    await subscriber.unsubscribe(subscription)
    await eventually(() => subscription.state, (state) => state === "ended")
    await service.deposit(href, "to nobody")
    const list = () => service.send("GET", discovered.hub, { basic: owner })
    await eventually(list, ({ text }) => !text.includes("<registration "))
    expect(subscription.content).toHaveLength(2)
  })

  it("keeps the subscriptions of one callback to two topics apart", async () => {
    const { href } = await service.open("both")
    const topics = [href, `${href}?format=atom`]
    const all = await Promise.all(topics.map(async (topic) => {
      const subscription = await subscriber.subscribe({ hub: `${href}/registrations`, topic })
      return whenActive(subscription)
    }))
    await service.deposit(href, "for both")
    const types = await Promise.all(all.map(async (one) => (await contentOf(one, 1)).contentType))
    expect(types).toEqual([
      "application/xml; charset=utf-8",
      "application/atom+xml; charset=utf-8"
    ])
    const [own] = all
    if (own !== undefined) await subscriber.unsubscribe(own)
    await eventually(() => own?.state, (state) => state === "ended")
    expect(all[1]?.state).toBe("active")
  })
})

describe("a subscription", () => {
  const begin = async (name: string, secret?: string): Promise<[Subscription, Discovered]> => {
    const { href } = await service.open(name)
    const discovered = await subscriber.discover(`${href}?format=atom`)
    const options = secret === undefined ? {} : { secret }
    return [await whenActive(await subscriber.subscribe(discovered, options)), discovered]
  }
  const mailboxOf = ({ hub }: Discovered) => hub.slice(0, -"/registrations".length)

  it("takes another secret and lease by a renewal", async () => {
    const [subscription, discovered] = await begin("renewed", "old")
    await service.deposit(mailboxOf(discovered), "one")
    expect((await contentOf(subscription, 1)).isAuthentic).toBe(true)
    await subscriber.renew(subscription, { secret: "new", leaseSeconds: 7200 })
    await eventually(() => subscription.leaseSeconds, (lease) => lease === 7200)
    // The echo has arrived when the service shows the new lease.
    const list = () => service.send("GET", discovered.hub, { basic: owner })
    const [, location = ""] = /<registration href="([^"]*)"/.exec((await list()).text) ?? []
    await service.until(location, (one) => {
      const untilMs = Date.parse(one.child("lease-until") ?? "")
      return untilMs - Date.parse(one.child("last") ?? "") === 7_200_000
    })
    await service.deposit(mailboxOf(discovered), "two")
    expect((await contentOf(subscription, 2)).isAuthentic).toBe(true)
  })

  it("has content without a signature if it has no secret", async () => {
    const [subscription, discovered] = await begin("unsigned")
    await service.deposit(mailboxOf(discovered), "one")
    expect((await contentOf(subscription, 1)).isAuthentic).toBeUndefined()
  })

  it("is denied with a reason when the mailbox is removed", async () => {
    const [subscription, discovered] = await begin("removed")
    await service.send("DELETE", mailboxOf(discovered), { basic: owner })
    await eventually(() => subscription.state, (state) => state === "denied")
    expect(subscription.reason).toBe("the mailbox has been removed")
  })

  it("ends when its callback answers content with 410", async () => {
    const [subscription, discovered] = await begin("gone")
    subscription.contentStatus = 410
    await service.deposit(mailboxOf(discovered), "one")
    await contentOf(subscription, 1)
    const list = () => service.send("GET", discovered.hub, { basic: owner })
    await eventually(list, ({ text }) => !text.includes("<registration "))
  })

  it("is 422 for a topic of another service, and 401 without rights", async () => {
    const { href } = await service.open("refused")
    const hub = `${href}/registrations`
    await expect(subscriber.subscribe({ hub, topic: "http://example.org/feed" }))
      .rejects.toThrow("422")
    await expect(subscriber.subscribe({ hub, topic: `${href}?format=pdf` })).rejects.toThrow("422")
    const stranger = new WebSubSubscriber("bob:wrong")
    await stranger.listen()
    await expect(stranger.subscribe({ hub, topic: href })).rejects.toThrow("401")
    await stranger.close()
  })
})
