/** Push registrations by their protocol (protocol §1.4, A12): the native form, and its rights. */
import { Webhook } from "standardwebhooks"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import type { Answered, Sending } from "./harness.ts"
import { owner } from "./mailbox-harness.ts"
import { broughtBy, changedOf, eventually, formType, isActive, registration, type Registrations,
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

/** The fields of a push that the signature covers. */
const fieldsOf = (headers: Readonly<Record<string, string | string[] | undefined>>) =>
  Object.fromEntries(
    ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => [
      name,
      String(headers[name])
    ])
  )

describe("POST /mailboxes/{mailbox}/registrations", () => {
  it("answers 201, Location and the secret, and verifies the callback", async () => {
    const { href } = await service.open("made")
    const callback = `${subscriber.at("echo")}?own=1`
    const created = await service.register(href, callback)
    expect(created.status).toBe(201)
    const location = created.header("location")
    expect(location).toMatch(new RegExp(`^${href}/registrations/[A-Za-z0-9_-]{22}$`))
    expect(created.header("cache-control")).toBe("no-store")
    expect(created.header("link")).toContain(`<${href}>; rel="mailbox"`)
    expect(created.xml.name).toBe("registration")
    expect(created.xml.attributes).toMatchObject({
      href: location,
      status: "unverified",
      form: "native"
    })
    expect(created.child("callback")).toBe(callback)
    expect(created.child("account")).toBe("admin")
    expect(created.child("secret")).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const active = await service.until(location, isActive)
    const [asked, ...more] = subscriber.challenges(callback)
    expect(more).toEqual([])
    expect(asked?.query.get("own")).toBe("1")
    expect(asked?.query.get("hub.mode")).toBe("subscribe")
    expect(asked?.query.get("hub.topic")).toBe(href)
    expect(asked?.query.get("hub.challenge")).toMatch(/^[A-Za-z0-9_-]{22}$/)
    expect(active.text).not.toContain("whsec_")
    expect(active.child("secret")).toBeUndefined()
    expect(active.child("lease-until")).toBeUndefined()
    expect(active.xml.attributes["created"]).toBe(created.xml.attributes["created"])
    expect(active.header("cache-control")).toBe("private, no-cache")
    expect(active.header("vary")).toMatch(/Authorization/)
  })

  it("accepts JSON and a page's form, and shows the secret in the negotiated type", async () => {
    const { href } = await service.open("kinds")
    const callback = subscriber.at("echo")
    const json = await service.register(href, callback, {
      body: JSON.stringify({ callback }),
      type: "application/json",
      accept: "application/json"
    })
    expect(json.status).toBe(201)
    expect(json.json).toMatchObject({
      href: json.header("location"),
      form: "native",
      callback,
      secret: expect.stringMatching(/^whsec_/)
    })
    const page = await service.register(href, callback, {
      body: new URLSearchParams({ callback }).toString(),
      type: formType,
      accept: "text/html"
    })
    expect([page.status, page.header("content-type")]).toEqual([201, "text/html; charset=utf-8"])
    expect(page.text).toMatch(/<code>whsec_[A-Za-z0-9+/]{43}=<\/code>/)
    expect(page.header("location")).not.toBe(json.header("location"))
  })

  it("is made once for an Idempotency-Key, with the same secret", async () => {
    const { href } = await service.open("keyed")
    const callback = subscriber.at("echo")
    const headers = { "Idempotency-Key": "\"one\"" }
    const first = await service.register(href, callback, { headers })
    const repeated = await service.register(href, callback, { headers })
    expect([repeated.status, repeated.text]).toEqual([201, first.text])
    expect(repeated.header("location")).toBe(first.header("location"))
    expect(childrenOf((await get(`${href}/registrations`)).xml)).toHaveLength(1)
  })

  const long = `http://example.org/${"x".repeat(2048)}`
  it.each<[string, Sending, number, string]>([
    ["no callback", { body: "<registration/>" }, 422, "callback is required"],
    ["an empty one", { body: registration(" ") }, 422, "callback is required"],
    ["a path", { body: registration("/cb") }, 422, "absolute http or https URI"],
    ["another scheme", { body: registration("ftp://example.org/") }, 422, "http or https"],
    ["no host", { body: registration("http:///cb") }, 422, "http or https"],
    ["a space", { body: registration("http://example.org/a b") }, 422, "http or https"],
    ["a bad port", { body: registration("http://example.org:99999/") }, 422, "http or https"],
    ["a long one", { body: registration(long) }, 422, "2048 characters"],
    ["a user name", { body: registration("http://me@example.org/") }, 422, "user name"],
    ["a password", { body: registration("http://:pw@example.org/") }, 422, "password"],
    ["a fragment", { body: registration("http://example.org/#a") }, 422, "fragment"],
    ["an empty fragment", { body: registration("http://example.org/#") }, 422, "fragment"],
    ["another root", { body: "<subscription/>" }, 422, "registration"],
    ["no XML", { body: "<registration>" }, 400, ""],
    ["no JSON", { body: "{", type: "application/json" }, 400, ""],
    ["a bad form", { body: "callback=%ff", type: formType }, 400, ""],
    ["another type", { body: "x", type: "text/plain" }, 415, "application/xml"]
  ])("refuses %s", async (_name, options, status, detail) => {
    const refused = await service.register(`${service.base}/mailboxes/kinds`, "", options)
    expect(refused.status).toBe(status)
    expect(refused.header("content-type")).toContain("application/problem+xml")
    expect(refused.text).toContain(detail)
    expect(refused.text).not.toContain("pw@")
    if (status === 415) expect(refused.header("accept-post")).toContain(formType)
  })

  it("is 409 when a mailbox has as many as it may, and leaves nothing", async () => {
    const { href } = await service.open("full")
    const callback = subscriber.at("mute")
    for (let created = 0; created < 256; created += 32) {
      const answers = await Promise.all(
        Array.from({ length: 32 }, () => service.register(href, callback))
      )
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    }
    const other = subscriber.at("echo")
    const refused = await service.register(href, other)
    expect(refused.status).toBe(409)
    expect(refused.text).toContain("maximum number of registrations")
    const listed = await get(`${href}/registrations`)
    expect(childrenOf(listed.xml)).toHaveLength(256)
    expect(listed.text).not.toContain(other)
  })
})

describe("who may", () => {
  const wrong = "anyone:not-the-password-of-it"
  let opened: { readonly href: string; readonly password: string; readonly shared: string }
  let location = ""

  beforeAll(async () => {
    opened = await service.open("rights")
    location = (await service.register(opened.href, subscriber.at("echo"))).header("location")
  })

  const rows = (): ReadonlyArray<readonly [string, string]> => [
    ["POST", `${opened.href}/registrations`],
    ["GET", `${opened.href}/registrations`],
    ["GET", location],
    ["PUT", location],
    ["POST", location],
    ["POST", `${location}/secret`],
    ["DELETE", location]
  ]
  const each = async (options: Sending, of = (href: string) => href) => {
    const answers: Array<Answered> = []
    for (const [method, href] of rows()) answers.push(await service.send(method, of(href), options))
    return answers
  }
  const shared = (href: string) => href.replace(opened.href, opened.shared)

  it("is 401 without credentials, with the challenges, for any body", async () => {
    for (const one of await each({})) {
      expect([one.status, one.header("www-authenticate")]).toEqual([
        401,
        "Basic realm=\"restante\", Bearer"
      ])
      expect(one.header("link")).toContain("rel=\"mailbox\"")
    }
  })

  it("is 403 for other accounts and 401 for a wrong password", async () => {
    for (const one of await each({ basic: service.bob })) expect(one.status).toBe(403)
    for (const one of await each({ basic: wrong })) expect(one.status).toBe(401)
  })

  it("is 401 by the shared URI alone, and 404 by a wrong one", async () => {
    for (const one of await each({}, shared)) expect(one.status).toBe(401)
    const guessed = (href: string) => href.replace(opened.href, `${opened.href}~guessed`)
    for (const one of await each({ basic: owner }, guessed)) expect(one.status).toBe(404)
  })

  it("is 404 where there is no mailbox or registration, and 410 where there was", async () => {
    const nowhere = `${service.base}/mailboxes/nowhere/registrations`
    expect((await service.register(nowhere.replace(/\/reg.*/, ""), "http://a.example")).status)
      .toBe(404)
    for (const href of [nowhere, `${opened.href}/registrations/AAAAAAAAAAAAAAAAAAAAAA`]) {
      expect((await get(href)).status).toBe(404)
    }
    for (const id of ["short", "not~secret-one", "a=b=c=d=e=f=g", `${"a".repeat(65)}`]) {
      expect((await get(`${opened.href}/registrations/${id}`)).status).toBe(404)
    }
    const { href } = await service.open("brief")
    await service.send("DELETE", href, { basic: owner })
    expect((await service.register(href, "http://a.example")).status).toBe(410)
    expect((await get(`${href}/registrations`)).status).toBe(410)
  })

  it("is open to the password, and to an account by the shared URI", async () => {
    const basic = `anyone:${opened.password}`
    const created = await service.register(opened.href, subscriber.at("echo"), { basic })
    expect([created.status, created.child("account")]).toEqual([201, undefined])
    const listed = await get(`${opened.shared}/registrations`, { basic: service.bob })
    expect(listed.status).toBe(200)
    expect(childrenOf(listed.xml)).toHaveLength(2)
    const callback = subscriber.at("echo")
    const bobs = await service.register(opened.shared, callback, { basic: service.bob })
    expect([bobs.status, bobs.child("account")]).toEqual([201, "bob"])
    const href = bobs.header("location")
    expect(href.startsWith(`${opened.shared}/registrations/`)).toBe(true)
    const active = await eventually(() => get(href, { basic: service.bob }), isActive)
    expect(active.header("x-robots-tag")).toBe("noindex")
    expect(subscriber.challenges(callback)[0]?.query.get("hub.topic")).toBe(opened.href)
    expect((await service.send("DELETE", href, { basic })).status).toBe(204)
  })
})

describe("registrations by a secret of the mailbox", () => {
  const shows = async (href: string) =>
    childrenOf((await get(`${href}/registrations`)).xml).map(({ attributes }) => attributes["href"])

  it("end when it changes, and those of the owner stay", async () => {
    const { href, password, shared } = await service.open("leaked")
    const basic = `anyone:${password}`
    const [mine, theirs, bobs, moved, hub] = Array.from({ length: 5 }, () => subscriber.at("echo"))
    const register = async (callback = "", at = href, options: Sending = {}) => {
      const created = await service.register(at, callback, options)
      expect(created.status).toBe(201)
      const { pathname } = new URL(created.header("location"))
      return `${href}/registrations/${pathname.split("/").at(-1)}`
    }
    const kept = await register(mine)
    const stolen = await register(subscriber.at("echo"))
    const ending = [
      await register(theirs, href, { basic }),
      await register(bobs, shared, { basic: service.bob }),
      stolen
    ]
    const body = registration(moved ?? "")
    expect((await service.send("PUT", stolen, { basic, body })).status).toBe(200)
    const subscribed = await service.send("POST", `${href}/registrations`, {
      basic,
      type: formType,
      body: new URLSearchParams({
        "hub.mode": "subscribe",
        "hub.topic": href,
        "hub.callback": hub ?? ""
      }).toString()
    })
    expect(subscribed.status).toBe(202)
    ending.push(subscribed.header("location"))
    for (const one of [kept, ...ending]) await service.until(one, isActive)
    const changed = await service.send("POST", `${href}/password`, { basic: owner })
    expect(changed.status).toBe(200)
    const late = subscriber.at("echo")
    const renewed = await register(late, href, { basic: `anyone:${changed.child("password")}` })
    await service.until(renewed, isActive)
    const deposited = (await service.deposit(href, "for those who may")).header("location")
    for (const one of ending) await service.until(one, ({ status }) => status === 410)
    for (const callback of [mine, late]) {
      const pushes = await eventually(
        () => subscriber.pushes(callback ?? ""),
        (all) => all.length > 0
      )
      expect(broughtBy(pushes)).toEqual([deposited])
    }
    for (const callback of [theirs, bobs, moved, hub]) {
      expect(subscriber.pushes(callback ?? "")).toEqual([])
    }
    await eventually(() => shows(href), (all) => all.length === 2)
    expect(await shows(href)).toEqual([kept, renewed])
  })
})

describe("pushes", () => {
  it("contain the deposits, in order, signed by Standard Webhooks", async () => {
    const { href } = await service.open("pushed")
    const early = await service.deposit(href, "before")
    const callback = subscriber.at("echo")
    const created = await service.register(href, callback)
    await service.until(created.header("location"), isActive)
    const deposited: Array<string> = []
    for (const text of ["one", "two", "three"]) {
      deposited.push((await service.deposit(href, text)).header("location"))
    }
    const brought = () => broughtBy(subscriber.pushes(callback))
    await eventually(brought, (all) => new Set(all).size === 3)
    expect([...new Set(brought())]).toEqual(deposited)
    expect(brought()).not.toContain(early.header("location"))
    const webhook = new Webhook(created.child("secret") ?? "")
    for (const push of subscriber.pushes(callback)) {
      expect(push.headers["content-type"]).toMatch(/^application\/xml\b/)
      expect(changedOf(push)).toMatchObject({ name: "changed", attributes: { mailbox: href } })
      webhook.verify(push.body, fieldsOf(push.headers), { jsonParse: false })
    }
    const cursor = await service.until(
      created.header("location"),
      (answer) => answer.child("cursor") === "4"
    )
    expect(cursor.child("attempts")).toBe("0")
    expect(cursor.child("code")).toBe("204")
    expect(cursor.child("last")).toMatch(/^\d{4}-/)
  })

  it.each(["mute", "refuse"] as const)("never go to a callback that is %s", async (manner) => {
    const { href } = await service.open(`silent-${manner}`)
    const callback = subscriber.at(manner)
    const working = subscriber.at("echo")
    const created = await service.register(href, callback)
    const other = await service.register(href, working)
    await service.until(other.header("location"), isActive)
    const asked = await service.until(
      created.header("location"),
      (answer) => answer.child("problem") !== undefined
    )
    expect(statusOf(asked)).toBe("unverified")
    expect(asked.child("attempts")).toBe("1")
    await service.deposit(href, "for those who answered")
    await eventually(() => subscriber.pushes(working), ({ length }) => length > 0)
    expect(subscriber.pushes(callback)).toEqual([])
  })

  it("end when the callback answers 410", async () => {
    const { href } = await service.open("ended")
    const created = await service.register(href, subscriber.at("gone"))
    await service.until(created.header("location"), isActive)
    await service.deposit(href, "the last")
    await service.until(created.header("location"), ({ status }) => status === 410)
    await eventually(
      () => get(`${href}/registrations`),
      ({ xml }) => childrenOf(xml).length === 0
    )
  })
})
