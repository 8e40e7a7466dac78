/** Web Push over HTTP: registering a browser, and what its push service and the browser get. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { browserReplaysPerMinuteMax, originBrowsersMax, pushItemsMax } from "../../actors/limits.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { countedSite } from "../../http/resources/registrations/push-services.ts"
import { type Browser, decryptPush, newBrowser, verifyVapid } from "../actors/web-push.ts"
import type { Answered } from "./harness.ts"
import { owner } from "./mailbox-harness.ts"
import { eventually, formType, isActive, type Registrations, startRegistrations,
  statusOf } from "./registrations-harness.ts"

interface Push {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A push service on loopback, with an answer for each endpoint; 201 by default. */
const startPushService = async () => {
  const pushes: Array<Push> = []
  const answers = new Map<string, number>()
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => void chunks.push(chunk))
    request.on("end", () => {
      const path = request.url ?? ""
      pushes.push({ path, headers: request.headers, body: Buffer.concat(chunks) })
      response.writeHead(answers.get(path) ?? 201).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // The address of a TCP server is an object.
  const { port } = server.address() as AddressInfo
  const origin = `http://127.0.0.1:${port}`
  let created = 0
  return {
    origin,
    at: () => `${origin}/push/${++created}`,
    answer: (endpoint: string, status: number) =>
      void answers.set(new URL(endpoint).pathname, status),
    pushes: (endpoint: string) => pushes.filter(({ path }) => path === new URL(endpoint).pathname),
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

let service: Registrations
let pushService: Awaited<ReturnType<typeof startPushService>>
let browser: Browser

beforeAll(async () => {
  service = await startRegistrations()
  pushService = await startPushService()
  browser = await newBrowser()
})
afterAll(async () => {
  await service.close()
  await pushService.close()
})

/** What `PushSubscription.toJSON()` gives. */
const subscriptionOf = (endpoint: string, { auth, p256dh }: Browser = browser) => ({
  endpoint,
  expirationTime: null,
  keys: { p256dh, auth }
})

const asJson = { type: "application/json", accept: "application/json" }

const subscribe = (mailbox: string, subscription: object): Promise<Answered> =>
  service.register(mailbox, "", { body: JSON.stringify(subscription), ...asJson })

const get = (href: string, accept?: string) =>
  service.send("GET", href, { basic: owner, ...accept === undefined ? {} : { accept } })

/** The documents that a browser got, in their order. */
const opened = async (endpoint: string, by: Browser = browser) =>
  Promise.all(
    pushService.pushes(endpoint).map(async ({ body }) => JSON.parse(await decryptPush(by, body)))
  )

const applicationServerKeyOf = async (mailbox: string): Promise<string> =>
  (await get(`${mailbox}/registrations`)).xml.attributes["applicationServerKey"] ?? ""

describe("POST /mailboxes/{mailbox}/registrations with a push subscription", () => {
  it("registers it as the browser writes it, active, and never shows its secret", async () => {
    const { href } = await service.open("browser")
    const endpoint = pushService.at()
    const created = await subscribe(href, subscriptionOf(endpoint))
    expect(created.status).toBe(201)
    const location = created.header("location")
    expect(location).toMatch(new RegExp(`^${href}/registrations/[A-Za-z0-9_-]{22}$`))
    expect(created.json).toMatchObject({
      href: location,
      form: "webpush",
      status: "active",
      callback: endpoint,
      account: "admin"
    })
    const answers = [
      created,
      await get(location),
      await get(location, "text/html"),
      await get(`${href}/registrations`, "application/json"),
      await get(`${href}/registrations`, "text/html"),
      await get(`${service.base}/accounts/admin/export`, "*/*")
    ]
    for (const { status, text } of answers) {
      expect([200, 201]).toContain(status)
      expect(text).toContain(endpoint)
      expect(text).not.toContain(browser.auth)
      expect(text).not.toContain(browser.p256dh)
    }
  })

  it("takes it as XML, which is the same registration", async () => {
    const { href } = await service.open("browser-xml")
    const endpoint = pushService.at()
    const { auth, p256dh } = browser
    const xml = await service.register(href, "", {
      body: `<registration><endpoint>${endpoint}</endpoint>` +
        `<keys><p256dh>${p256dh}</p256dh><auth>${auth}</auth></keys></registration>`
    })
    expect([xml.status, xml.xml.attributes["form"], xml.child("callback")])
      .toEqual([201, "webpush", endpoint])
    const json = await subscribe(href, { ...subscriptionOf(endpoint), expirationTime: 1.5e12 })
    expect([json.status, json.header("location")]).toEqual([201, xml.header("location")])
    expect(childrenOf((await get(`${href}/registrations`)).xml)).toHaveLength(1)
  })

  const p256dh =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
  const auth = "BTBZMqHH6r4Tts7J_aSIgg"
  const endpoint = "https://push.example.net/1"
  it.each<[string, object, string]>([
    ["no endpoint", { keys: { p256dh, auth } }, "endpoint is required"],
    ["another scheme", { endpoint: "ftp://a/", keys: { p256dh, auth } }, "endpoint must be"],
    ["no TLS", { endpoint: "http://b.net/", keys: { p256dh, auth } }, "endpoint must be an https"],
    ["a user name", { endpoint: "https://a@b.net/", keys: { p256dh, auth } }, "endpoint must hold"],
    ["no keys", { endpoint }, "keys.p256dh must be"],
    ["no point", { endpoint, keys: { auth } }, "keys.p256dh must be"],
    ["a short point", { endpoint, keys: { p256dh: p256dh.slice(4), auth } }, "keys.p256dh must be"],
    ["a point that is not on the curve", {
      endpoint,
      keys: { p256dh: `${p256dh.slice(0, -4)}AAAA`, auth }
    }, "keys.p256dh must be"],
    ["a compressed point", { endpoint, keys: { p256dh: `A${p256dh.slice(1)}`, auth } }, "p256dh"],
    ["base64 of the other kind", {
      endpoint,
      keys: { p256dh: p256dh.replaceAll("-", "+"), auth }
    }, "keys.p256dh must be"],
    ["no auth", { endpoint, keys: { p256dh } }, "keys.auth must be"],
    ["a long auth", { endpoint, keys: { p256dh, auth: `${auth}AAAA` } }, "keys.auth must be"],
    ["padding", { endpoint, keys: { p256dh, auth: `${auth}==` } }, "keys.auth must be"],
    ["a callback too", { endpoint, callback: endpoint, keys: { p256dh, auth } }, "one of them"],
    ["an unknown name", { endpoint, keys: { p256dh, auth, other: "x" } }, "other"]
  ])("refuses %s", async (_name, subscription, detail) => {
    const refused = await subscribe(`${service.base}/mailboxes/browser`, subscription)
    expect(refused.status).toBe(422)
    expect(refused.text).toContain(detail)
    expect(refused.text).not.toContain(auth)
  })

  it("takes a bounded number at one origin that is no known push service", async () => {
    const { href } = await service.open("browser-origin")
    const at = (origin: string, n: number) => subscribe(href, subscriptionOf(`${origin}/?${n}`))
    const many = (origin: string) =>
      Promise.all(Array.from({ length: originBrowsersMax + 4 }, (_, n) => at(origin, n)))
    const victim = await many("https://victim.example")
    const created = victim.filter(({ status }) => status === 201)
    const refused = victim.filter(({ status }) => status !== 201)
    expect([created.length, refused.length]).toEqual([originBrowsersMax, 4])
    for (const { status, text } of refused) {
      expect([status, text]).toEqual([409, expect.stringContaining("FANOUT_ALLOW")])
    }
    const listed = await get(`${href}/registrations`)
    expect(childrenOf(listed.xml)).toHaveLength(originBrowsersMax)
    // One that is there may subscribe again, another origin has its own limit, and an end is room.
    const [first] = created
    const again = await get(first?.header("location") ?? "")
    const renewed = await subscribe(href, subscriptionOf(again.child("callback") ?? ""))
    expect(renewed.header("location")).toBe(first?.header("location"))
    expect((await at("https://other.example", 1)).status).toBe(201)
    await service.send("DELETE", first?.header("location") ?? "", { basic: owner })
    await eventually(() => at("https://victim.example", 99), ({ status }) => status === 201)
    // A team has many browsers at the push service of each.
    for (const origin of ["https://fcm.googleapis.com", "https://wns2-am3p.notify.windows.com"]) {
      for (const { status } of await many(origin)) expect(status).toBe(201)
    }
  })

  it.each([
    ["https://victim.example/?1", [], true],
    ["https://victim.example/?1", ["https://victim.example"], false],
    ["https://fcm.googleapis.com/fcm/send/x", [], false],
    ["https://updates.push.services.mozilla.com/wpush/v2/x", [], false],
    ["https://web.push.apple.com/x", [], false],
    ["https://fcm.googleapis.com.victim.example/x", [], true],
    ["https://evilfcm.googleapis.com/x", [], true],
    ["https://fcm.googleapis.com:8443/x", [], true],
    ["http://127.0.0.1:80/fcm.googleapis.com", [], true]
  ])("counts those at %s, of which %j are allowed: %s", (uri, allowed, isCounted) => {
    expect(countedSite(allowed, uri) !== undefined).toBe(isCounted)
  })

  it.each([
    ["https://a1.victim.example/x", "https://a2.b.victim.example:8443/y", true],
    ["https://victim.example/x", "http://a1.victim.example./x", true],
    ["https://victim.example/x", "https://victim2.example/x", false],
    ["https://192.0.2.1/x", "https://192.0.2.200:8443/x", true],
    ["https://192.0.2.1/x", "https://[::ffff:192.0.2.7]/x", true],
    ["https://192.0.2.1/x", "https://192.0.3.1/x", false],
    ["https://[2001:db8:1::1]/x", "https://[2001:db8:1:9::2]:8443/x", true],
    ["https://[2001:db8:1::1]/x", "https://[2001:db8:2::1]/x", false],
    ["http://localhost:8081/x", "http://localhost:8082/x", true]
  ])("counts those at %s together with those at %s: %s", (uri, other, isTogether) => {
    expect(countedSite([], uri)).toMatch(/^[A-Za-z0-9_-]{16}$/)
    expect(countedSite([], uri) === countedSite([], other)).toBe(isTogether)
  })

  it("needs the rights of every registration", async () => {
    const { href } = await service.open("browser-rights")
    const body = JSON.stringify(subscriptionOf(pushService.at()))
    const post = (basic: string | undefined) =>
      service.send("POST", `${href}/registrations`, {
        body,
        ...asJson,
        ...basic === undefined ? {} : { basic }
      })
    expect((await post(undefined)).status).toBe(401)
    expect((await post(service.bob)).status).toBe(403)
  })

  it("keeps the endpoint and the keys until the browser subscribes again", async () => {
    const { href } = await service.open("browser-fixed")
    const created = await subscribe(href, subscriptionOf(pushService.at()))
    const location = created.header("location")
    const other = JSON.stringify({ callback: pushService.at() })
    const put = await service.send("PUT", location, { basic: owner, body: other, ...asJson })
    expect([put.status, put.text]).toEqual([422, expect.stringContaining("subscribe the other")])
    const same = await service.send("PUT", location, {
      basic: owner,
      body: created.text,
      ...asJson
    })
    expect(same.status).toBe(200)
    const rotated = await service.send("POST", `${location}/secret`, {
      basic: owner,
      type: formType,
      body: ""
    })
    expect(rotated.status).toBe(409)
  })
})

describe("a push to a browser", () => {
  it("is signed by VAPID, and only the browser reads the newest notification", async () => {
    const { href } = await service.open("browser-pushed")
    await service.deposit(href, "before")
    const endpoint = pushService.at()
    const created = await subscribe(href, subscriptionOf(endpoint))
    const deposited = (await service.deposit(href, "Tea is ready")).header("location")
    await eventually(() => opened(endpoint), (all) => all.length > 0)
    const [push] = pushService.pushes(endpoint)
    expect(push?.headers).toMatchObject({
      "content-encoding": "aes128gcm",
      "content-type": "application/octet-stream",
      ttl: "604800",
      urgency: "normal",
      topic: expect.stringMatching(/^[A-Za-z0-9_-]{32}$/)
    })
    const { authorization } = push?.headers ?? {}
    const key = await applicationServerKeyOf(href)
    expect(await verifyVapid(authorization, key, pushService.origin, Date.now()))
      .toMatchObject({ sub: "mailto:admin@example.org" })
    expect((await opened(endpoint)).at(-1)).toEqual({
      mailbox: href,
      time: expect.stringMatching(/Z$/),
      notification: {
        href: deposited,
        received: expect.stringMatching(/Z$/),
        description: "Tea is ready"
      }
    })
    const shown = await service.until(
      created.header("location"),
      (answer) => answer.child("cursor") === "2"
    )
    expect([shown.child("code"), shown.child("attempts")]).toEqual(["201", "0"])
  })

  it("may be tested, without a notification", async () => {
    const { href } = await service.open("browser-tested")
    const endpoint = pushService.at()
    const location = (await subscribe(href, subscriptionOf(endpoint))).header("location")
    const tested = await service.send("POST", `${location}/test`, { basic: owner })
    expect([tested.status, tested.text]).toEqual([200, expect.stringContaining("delivered")])
    expect(await opened(endpoint)).toEqual([
      { mailbox: href, time: expect.stringMatching(/0000Z$/), test: "true" }
    ])
  })

  it.each([404, 410])("that gets %i to a test ends the registration", async (status) => {
    const { href } = await service.open(`browser-tested-${status}`)
    const endpoint = pushService.at()
    pushService.answer(endpoint, status)
    const location = (await subscribe(href, subscriptionOf(endpoint))).header("location")
    expect((await service.send("POST", `${location}/test`, { basic: owner })).status).toBe(410)
    expect((await get(location)).status).toBe(410)
    await eventually(
      () => get(`${href}/registrations`),
      ({ xml }) => childrenOf(xml).length === 0
    )
    expect(pushService.pushes(endpoint)).toHaveLength(1)
  })

  it("is refused once the push service has rejected one, until its owner lifts that", async () => {
    const { href } = await service.open("browser-rejecting")
    const test = (location: string) => service.send("POST", `${location}/test`, { basic: owner })
    for (const by of ["test", "push"]) {
      const endpoint = pushService.at()
      pushService.answer(endpoint, 403)
      const location = (await subscribe(href, subscriptionOf(endpoint))).header("location")
      if (by === "push") await service.deposit(href, "rejected")
      else expect((await test(location)).text).toContain("answered 403")
      const suspended = await service.until(location, (one) => statusOf(one) === "suspended")
      expect([by, suspended.child("code")]).toEqual([by, "403"])
      const refused = await test(location)
      expect([refused.status, refused.text]).toEqual([
        409,
        expect.stringMatching(/the test was not sent, as .* rejected .*: subscribe the browser/)
      ])
      expect((await get(location, "text/html")).text)
        .not.toContain(`${new URL(location).pathname}/test`)
      expect(pushService.pushes(endpoint)).toHaveLength(1)
      pushService.answer(endpoint, 201)
      expect((await service.send("PUT", location, { basic: owner })).status).toBe(200)
      expect((await test(location)).text).toContain("delivered")
    }
  })

  it("has the keys with which the browser subscribed last", async () => {
    const { href } = await service.open("browser-renewed")
    const endpoint = pushService.at()
    const first = await subscribe(href, subscriptionOf(endpoint))
    const later = await newBrowser()
    const again = await subscribe(href, subscriptionOf(endpoint, later))
    expect(again.header("location")).toBe(first.header("location"))
    await service.deposit(href, "for the new keys")
    await eventually(() => pushService.pushes(endpoint), (all) => all.length > 0)
    const [document] = await opened(endpoint, later)
    expect(document).toMatchObject({ notification: { description: "for the new keys" } })
  })

  it.each([404, 410])("that gets %i ends the registration", async (status) => {
    const { href } = await service.open(`browser-${status}`)
    const endpoint = pushService.at()
    pushService.answer(endpoint, status)
    const location = (await subscribe(href, subscriptionOf(endpoint))).header("location")
    await service.deposit(href, "for nobody")
    await service.until(location, (answer) => answer.status === 410)
    await eventually(
      () => get(`${href}/registrations`),
      ({ xml }) => childrenOf(xml).length === 0
    )
    expect(pushService.pushes(endpoint)).toHaveLength(1)
  })

  it("that gets 413 suspends it, until its owner lifts that", async () => {
    const { href } = await service.open("browser-413")
    const endpoint = pushService.at()
    pushService.answer(endpoint, 413)
    const location = (await subscribe(href, subscriptionOf(endpoint))).header("location")
    await service.deposit(href, "kept")
    const suspended = await service.until(location, (one) => statusOf(one) === "suspended")
    expect(suspended.child("code")).toBe("413")
    pushService.answer(endpoint, 201)
    expect((await service.send("PUT", location, { basic: owner })).status).toBe(200)
    await service.until(location, (one) => isActive(one) && one.child("cursor") === "1")
    expect((await opened(endpoint)).at(-1)).toMatchObject({ notification: { description: "kept" } })
  })

  it("that gets 503 is repeated", async () => {
    const { href } = await service.open("browser-503")
    const endpoint = pushService.at()
    pushService.answer(endpoint, 503)
    const location = (await subscribe(href, subscriptionOf(endpoint))).header("location")
    await service.deposit(href, "later")
    await service.until(location, (one) => Number(one.child("attempts")) > 0)
    pushService.answer(endpoint, 201)
    await service.until(location, (one) => one.child("cursor") === "1")
    expect(statusOf(await get(location))).toBe("active")
  })

  it("goes back to the newest changes only, as nothing has verified the endpoint", async () => {
    const { href } = await service.open("browser-back")
    for (let n = 0; n < pushItemsMax + 5; n += 1) await service.deposit(href, `number ${n}`)
    const endpoint = pushService.at()
    const location = (await subscribe(href, subscriptionOf(endpoint))).header("location")
    const body = JSON.stringify({ since: "2020-01-01T00:00:00Z" })
    const put = await service.send("PUT", location, { basic: owner, body, ...asJson })
    expect(put.status, put.text).toBe(200)
    const end = String(pushItemsMax + 5)
    await service.until(location, (one) => one.child("cursor") === end)
    expect(pushService.pushes(endpoint)).toHaveLength(1)
  })

  it("goes back a bounded number of times in a minute, and says when it may again", async () => {
    const { href } = await service.open("browser-back-again")
    await service.deposit(href, "old")
    const created = await subscribe(href, subscriptionOf(pushService.at()))
    const location = created.header("location")
    const body = JSON.stringify({ since: "2020-01-01T00:00:00Z" })
    const back = () => service.send("PUT", location, { basic: owner, body, ...asJson })
    for (let n = 0; n < browserReplaysPerMinuteMax; n++) expect((await back()).status).toBe(200)
    const excess = await back()
    expect([excess.status, excess.header("retry-after")]).toEqual([
      429,
      expect.stringMatching(/^[1-6]?\d$/)
    ])
    expect(excess.text).toContain("registration-replays")
    expect(excess.text).toContain("may be changed 6 times in a minute for a browser")
  })

  it("goes to no address that is not allowed", async () => {
    const { href } = await service.open("browser-private")
    const created = await subscribe(href, subscriptionOf("https://10.0.0.1/push"))
    await service.deposit(href, "for nobody")
    const failed = await service.until(
      created.header("location"),
      (answer) => answer.child("problem") !== undefined
    )
    expect(failed.child("problem")).toContain("the address is not allowed")
  })

  it("goes to public addresses only, if nobody's account has named its endpoint", async () => {
    const { href, password } = await service.open("browser-of-reader")
    const endpoint = pushService.at()
    const body = JSON.stringify(subscriptionOf(endpoint))
    const basic = `reader:${password}`
    const created = await service.send("POST", `${href}/registrations`, { basic, body, ...asJson })
    expect(created.status).toBe(201)
    await service.deposit(href, "for nobody")
    const failed = await service.until(
      created.header("location"),
      (answer) => answer.child("problem") !== undefined
    )
    expect(failed.child("problem")).toContain("the address is not allowed")
    expect(pushService.pushes(endpoint)).toEqual([])
  })

  it("is the last one when the mailbox is removed", async () => {
    const { href } = await service.open("browser-last")
    const endpoint = pushService.at()
    await subscribe(href, subscriptionOf(endpoint))
    await service.send("DELETE", href, { basic: owner })
    await eventually(() => pushService.pushes(endpoint), (all) => all.length > 0)
    expect((await opened(endpoint)).at(-1)).toMatchObject({ mailbox: href, deleted: "true" })
  })
})
