/**
 * Independent subscribers at a mailbox, over real connections: the WebSub library pubsubhubbub, and
 * the verifier of Standard Webhooks.
 */
import { createHmac } from "node:crypto"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { createServer, type Options, type Subscriber } from "pubsubhubbub"
import { Webhook, WebhookVerificationError } from "standardwebhooks"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linked } from "./ldn-harness.ts"
import { owner } from "./mailbox-harness.ts"
import { eventually, isActive, type Registrations, startRegistrations,
  startSubscriber } from "./registrations-harness.ts"

let service: Registrations

beforeAll(async () => {
  service = await startRegistrations()
})
afterAll(() => service.close())

/** The event of the library for a valid push. */
interface Pushed {
  readonly topic: string
  readonly hub: string
  readonly feed: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** Starts the library's subscriber, and collects its pushes. */
const listening = async (options: Omit<Options, "callbackUrl">) => {
  const subscriber = createServer({ ...options, callbackUrl: "" })
  const pushes: Array<Pushed> = []
  subscriber.on("feed", (pushed: Pushed) => void pushes.push(pushed))
  subscriber.listen(0, "127.0.0.1")
  await once(subscriber, "listen")
  // The address of a TCP server is an object.
  const { port } = subscriber.server.address() as AddressInfo
  const close = (): void => {
    subscriber.server.closeAllConnections()
    subscriber.server.close()
  }
  return { subscriber, pushes, callbackUrl: `http://127.0.0.1:${port}/`, close }
}

const request = (ask: Subscriber["subscribe"], topic: string, hub: string): Promise<void> =>
  new Promise((resolve, reject) => {
    ask(topic, hub, (error) => error === null ? resolve() : reject(error))
  })

const [username = "", password = ""] = owner.split(":")

describe("the WebSub library pubsubhubbub", () => {
  it("discovers, subscribes, is verified, accepts signed pushes, and unsubscribes", async () => {
    const { href } = await service.open("topic")
    const found = await service.send("GET", href, { basic: owner, accept: "application/atom+xml" })
    const [[hub = ""], [topic = ""]] = [linked(found, "hub"), linked(found, "self")]
    // W3C WebSub §4.1: the topic has only the representation that the subscriber asked for.
    expect(topic).toBe(`${href}?format=atom`)
    const secret = "what the subscriber knows"
    // The library subscribes with a derived secret but checks with the original one. So one
    // instance subscribes, and another one, which has the derived secret, listens.
    const derivedSecret = createHmac("sha1", secret).update(topic).digest("hex")
    const listener = await listening({ secret: derivedSecret })
    const { callbackUrl, pushes, subscriber } = listener
    const asking = createServer({ callbackUrl, secret, username, password, leaseSeconds: 3600 })
    const subscribed = once(subscriber, "subscribe")
    await request(asking.subscribe.bind(asking), topic, hub)
    const [verified] = await subscribed
    expect(verified).toMatchObject({ topic, hub })
    const location = (await service.deposit(href, "to be pushed")).header("location")
    const [push] = await eventually(() => pushes, ({ length }) => length > 0)
    expect(push?.feed.toString()).toContain(`<id>${location}</id>`)
    expect([push?.topic, push?.hub]).toEqual([topic, hub])
    expect(push?.headers["x-hub-signature"]).toMatch(/^sha256=[0-9a-f]{64}$/)
    const callback = `${callbackUrl}?topic=${encodeURIComponent(topic)}` +
      `&hub=${encodeURIComponent(hub)}`
    const forged = await fetch(callback, {
      method: "POST",
      headers: { link: `<${hub}>; rel="hub"`, "x-hub-signature": `sha256=${"0".repeat(64)}` },
      body: "<changed/>"
    })
    expect(forged.status).toBe(202)
    expect(pushes).toHaveLength(1)
    const left = once(subscriber, "unsubscribe")
    await request(asking.unsubscribe.bind(asking), topic, hub)
    expect((await left)[0]).toMatchObject({ topic, hub })
    const list = () => service.send("GET", hub, { basic: owner })
    await eventually(list, ({ text }) => !text.includes("<registration "))
    await service.deposit(href, "to nobody")
    await expect(request(asking.unsubscribe.bind(asking), topic, hub)).rejects.toThrow("404")
    expect(pushes).toHaveLength(1)
    listener.close()
  })

  it("learns from the status that its credentials are wrong, or the topic", async () => {
    const { href } = await service.open("guarded")
    const callbackUrl = "http://127.0.0.1:9/"
    const stranger = createServer({ callbackUrl, username: "bob", password: "wrong" })
    const known = createServer({ callbackUrl, username, password })
    const hub = `${href}/registrations`
    await expect(request(stranger.subscribe.bind(stranger), href, hub)).rejects.toThrow("401")
    await expect(request(known.subscribe.bind(known), `${href}x`, hub)).rejects.toThrow("422")
  })

  it("accepts pushes without a secret", async () => {
    const { href, password: shown } = await service.open("plain")
    const hub = `${href}/registrations`
    const listener = await listening({})
    const { callbackUrl, pushes, subscriber } = listener
    const asking = createServer({ callbackUrl, username: "anybody", password: shown })
    const subscribed = once(subscriber, "subscribe")
    await request(asking.subscribe.bind(asking), href, hub)
    await subscribed
    await service.deposit(href, "news")
    const [push] = await eventually(() => pushes, ({ length }) => length > 0)
    expect(push?.topic).toBe(href)
    listener.close()
  })
})

describe("the verifier of Standard Webhooks", () => {
  it("accepts pushes before and during a rotation, and no others", async () => {
    const { href } = await service.open("hooks")
    const receiver = await startSubscriber()
    const callback = receiver.at("echo")
    const created = await service.register(href, callback)
    const location = created.header("location")
    const older = created.child("secret") ?? ""
    await service.until(location, isActive)
    const pushed = async (description: string) => {
      await service.deposit(href, description)
      const pushes = await eventually(
        () => receiver.pushes(callback),
        (all) => all.some(({ body }) => body.includes(`>${description}<`))
      )
      const push = pushes.find(({ body }) => body.includes(`>${description}<`))
      const headers = Object.fromEntries(
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => [
          name,
          String(push?.headers[name])
        ])
      )
      return { body: push?.body ?? "", headers }
    }
    const verify = (secret: string, { body, headers }: Awaited<ReturnType<typeof pushed>>) =>
      new Webhook(secret).verify(body, headers, { jsonParse: false })
    const first = await pushed("first")
    verify(older, first)
    const other = `whsec_${Buffer.alloc(32, 7).toString("base64")}`
    expect(() => verify(other, first)).toThrow(WebhookVerificationError)
    expect(() => verify(older, { ...first, body: `${first.body} ` }))
      .toThrow(WebhookVerificationError)
    const rotated = await service.send("POST", `${location}/secret`, { basic: owner })
    const newer = rotated.child("secret") ?? ""
    const second = await pushed("second")
    for (const secret of [older, newer]) verify(secret, second)
    expect(() => verify(newer, first)).toThrow(WebhookVerificationError)
    await receiver.close()
  })
})
