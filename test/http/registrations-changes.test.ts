/** One registration (protocol §1.4): reading, listing, resuming, new secrets, removal. */
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { mailboxTestsPerMinuteMax, testsPerMinuteMax } from "../../actors/limits.ts"
import { replayEndsFormat } from "../../actors/index.ts"
import type { RegistrationReply } from "../../actors/registration/protocol.ts"
import { upgradeRetrySeconds } from "../../http/limits.ts"
import { childOf, childrenOf, type Element } from "../../http/formats/xml/index.ts"
import type { Service } from "../../http/pipeline/service.ts"
import type { Answered, Sending } from "./harness.ts"
import { owner } from "./mailbox-harness.ts"
import { eventually, formType, isActive, registration, type Registrations, startRegistrations,
  startSubscriber, statusOf, type Subscriber } from "./registrations-harness.ts"

/** Callbacks whose registrations appear as if they had failed for a week. */
const suspended = new Set<string>()

/** The service with some suspended registrations. */
const suspending = (service: Service): Service => ({
  ...service,
  system: {
    ...service.system,
    ask: (to, message) =>
      Effect.map(service.system.ask(to, message), (value) => {
        // The type of the reply follows from the protocol of this kind.
        const reply = value as RegistrationReply
        return to.kind === "registration" && reply._tag === "Described" &&
            suspended.has(reply.view.callback)
          ? {
            ...reply,
            view: { ...reply.view, status: "suspended", code: 500, problem: "a\u0001" }
          }
          : reply
      })
  }
})

let service: Registrations
let subscriber: Subscriber
let mailbox = ""
let password = ""
let href = ""
let secret = ""
let callback = ""
let created = 0

beforeAll(async () => {
  service = await startRegistrations(suspending)
  subscriber = await startSubscriber()
})
afterAll(async () => {
  await service.close()
  await subscriber.close()
})
beforeEach(async () => {
  const opened = await service.open(`changes-${++created}`)
  mailbox = opened.href
  password = opened.password
  callback = subscriber.at("echo")
  const answer = await service.register(mailbox, callback)
  href = answer.header("location")
  secret = answer.child("secret") ?? ""
  await service.until(href, isActive)
})

const send = (method: string, to: string, options: Sending = {}) =>
  service.send(method, to, { basic: owner, ...options })

const posted = (to: string, fields: Readonly<Record<string, string>>, accept = "text/html") =>
  send("POST", to, { accept, type: formType, body: new URLSearchParams(fields).toString() })

describe("GET of the collection and of one", () => {
  it("shows all in the order of creation", async () => {
    const other = subscriber.at("mute")
    const second = await service.register(mailbox, other)
    const listed = await send("GET", `${mailbox}/registrations`)
    expect([listed.status, listed.header("cache-control")]).toEqual([200, "private, no-cache"])
    expect([listed.xml.name, listed.xml.attributes["href"]]).toEqual([
      "registrations",
      `${mailbox}/registrations`
    ])
    expect(childrenOf(listed.xml).map(({ attributes, name }) => ({ name, ...attributes }))).toEqual(
      [
        {
          name: "registration",
          href,
          status: "active",
          form: "native",
          callback,
          cursor: "0",
          attempts: "0",
          last: expect.any(String),
          code: "200"
        },
        expect.objectContaining({
          name: "registration",
          href: second.header("location"),
          status: "unverified",
          form: "native",
          callback: other,
          cursor: "0",
          attempts: expect.stringMatching(/^[01]$/)
        })
      ]
    )
    expect(listed.text).not.toContain("whsec_")
  })

  it.each(["/registrations", ""])("is negotiated and has an ETag (%s)", async (path) => {
    const to = path === "" ? href : mailbox + path
    for (const accept of ["application/xml", "application/json", "text/plain", "text/html"]) {
      const answer = await send("GET", to, { accept })
      expect([answer.status, answer.header("content-type")]).toEqual([
        200,
        accept === "application/json" ? accept : `${accept}; charset=utf-8`
      ])
      expect(answer.text).toContain(callback)
      const same = await send("GET", to, { accept, headers: { "If-None-Match": answer.etag } })
      expect([same.status, same.text]).toEqual([304, ""])
      const head = await send("HEAD", to, { accept })
      expect([head.status, head.etag]).toEqual([200, answer.etag])
    }
    expect((await send("GET", to, { accept: "image/png" })).status).toBe(406)
    const allow = path === "" ? "GET, HEAD, POST, PUT, DELETE, OPTIONS" : "GET, HEAD, POST, OPTIONS"
    const refused = await send("PATCH", to)
    expect([refused.status, refused.header("allow")]).toEqual([405, allow])
    expect(refused.header("allow")).toBe((await send("OPTIONS", to)).header("allow"))
  })

  it("has pages with badges and forms, and the mailbox's page links to them", async () => {
    const list = (await send("GET", `${mailbox}/registrations`, { accept: "text/html" })).text
    expect(list).toContain("✓ active")
    expect(list).toContain(new URL(href).pathname)
    expect(list).toMatch(/<input type="url"[^>]* name="callback"/)
    const page = (await send("GET", href, { accept: "text/html" })).text
    for (const method of ["put", "delete"]) {
      expect(page).toContain(`<input type="hidden" name="method" value="${method}">`)
    }
    expect(page).toContain(`action="${new URL(href).pathname}/secret"`)
    const own = await send("GET", mailbox, { accept: "text/html" })
    expect(own.text).toContain(`href="${mailbox}/registrations"`)
  })

  it("shows a suspended one with the reason", async () => {
    suspended.add(callback)
    const answer = await send("GET", href)
    expect([statusOf(answer), answer.child("code"), answer.child("problem")]).toEqual([
      "suspended",
      "500",
      "\"a\\u0001\""
    ])
    for (const to of [href, `${mailbox}/registrations`]) {
      expect((await send("GET", to, { accept: "text/html" })).text).toContain("✗ suspended")
    }
  })
})

describe("PUT", () => {
  it("accepts the document of GET, or nothing, and leaves an active one active", async () => {
    const answer = await send("GET", href)
    const same = await send("PUT", href, {
      body: answer.text,
      headers: { "If-Match": answer.etag }
    })
    expect([same.status, statusOf(same), same.child("callback")]).toEqual([200, "active", callback])
    expect(same.header("cache-control")).toBe("private, no-cache")
    const { text } = await send("GET", href, { accept: "application/json" })
    const json = await send("PUT", href, { body: text, type: "application/json" })
    expect([json.status, json.child("callback")]).toEqual([200, callback])
    expect((await send("PUT", href)).status).toBe(200)
    expect(subscriber.challenges(callback)).toHaveLength(1)
  })

  it("pauses: what comes meanwhile is pushed once it is resumed", async () => {
    const json = { body: JSON.stringify({ status: "paused" }), type: "application/json" }
    const held = await send("PUT", href, json)
    expect([held.status, statusOf(held)]).toEqual([200, "paused"])
    const read = await send("GET", href)
    // The document of GET keeps it so.
    expect(statusOf(await send("PUT", href, { body: read.text }))).toBe("paused")
    await service.deposit(mailbox, "while paused")
    const other = await service.register(mailbox, subscriber.at("echo"))
    await service.until(other.header("location"), isActive)
    await service.deposit(mailbox, "for the other one")
    const otherCallback = other.child("callback") ?? ""
    await eventually(() => subscriber.pushes(otherCallback), ({ length }) => length > 0)
    expect(subscriber.pushes(callback)).toEqual([])
    expect(statusOf(await send("PUT", href))).toBe("active")
    const [push] = await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
    expect(push?.body).toContain("while paused")
    expect(push?.body).toContain("for the other one")
  })

  it("pushes again what came after a time or a position, or leaves out some", async () => {
    await service.deposit(mailbox, "first")
    const listed = await send("GET", mailbox)
    const position = listed.xml.attributes["time"] ?? ""
    await service.deposit(mailbox, "second")
    const shownIn = (text: string) => () =>
      subscriber.pushes(callback).filter(({ body }) => body.includes(text)).length
    await eventually(shownIn("second"), (count) => count === 1)
    const again = (since: string) =>
      send("PUT", href, { body: JSON.stringify({ since }), type: "application/json" })
    expect(statusOf(await again(position))).toBe("active")
    await eventually(shownIn("second"), (count) => count === 2)
    expect(shownIn("first")()).toBe(1)
    expect((await again("2020-01-01T00:00:00Z")).status).toBe(200)
    await eventually(shownIn("first"), (count) => count === 2)
    await eventually(shownIn("second"), (count) => count === 3)
    // The same changes in one push have the same id, also when they are pushed again.
    const idOf = ({ headers }: { readonly headers: Record<string, unknown> }) =>
      headers["webhook-id"]
    const alone = subscriber.pushes(callback)
      .filter(({ body }) => body.includes("second") && !body.includes("first"))
    expect(new Set(alone.map(idOf)).size).toBe(1)
    expect((await posted(href, { method: "put", since: "2020-01-01T00:00:00Z" })).status).toBe(303)
    await eventually(shownIn("first"), (count) => count === 3)
  })

  it("pushes a range again, and then only what is new", async () => {
    const timeOf = async (): Promise<string> =>
      (await send("GET", mailbox)).xml.attributes["time"] ?? ""
    const shown = (text: string): number =>
      subscriber.pushes(callback).filter(({ body }) => body.includes(text)).length
    const times: Array<string> = []
    for (const text of ["alpha", "beta", "gamma"]) {
      times.push(await timeOf())
      await service.deposit(mailbox, text)
      await eventually(() => shown(text), (count) => count === 1)
    }
    const [, since = "", until = ""] = times
    const put = (document: object) =>
      send("PUT", href, { body: JSON.stringify(document), type: "application/json" })
    expect((await put({ since, until })).status).toBe(200)
    await eventually(() => shown("beta"), (count) => count === 2)
    await service.deposit(mailbox, "delta")
    await eventually(() => shown("delta"), (count) => count === 1)
    expect(["alpha", "beta", "gamma"].map(shown)).toEqual([1, 2, 1])
    expect((await posted(href, { method: "put", since, until })).status).toBe(303)
    await eventually(() => shown("beta"), (count) => count === 3)
    for (
      const [document, detail] of [
        [{ until }, "until is the end of a replay, which has no beginning: add since"],
        [{ since: until, until: since }, "until is before since: give a later one"],
        [{ since, until: "tomorrow" }, "until must be a time"]
      ] as const
    ) {
      const refused = await put(document)
      expect([refused.status, refused.text]).toEqual([422, expect.stringContaining(detail)])
    }
    const page = await send("GET", href, { accept: "text/html" })
    expect(page.text).toContain("name=\"until\"")
    expect(["alpha", "beta", "gamma", "delta"].map(shown)).toEqual([1, 3, 1, 1])
  })

  it("pushes no range while a node of an earlier version is in the cluster", async () => {
    const older = await startRegistrations((one) => ({
      ...one,
      system: { ...one.system, format: () => replayEndsFormat - 1 }
    }))
    try {
      const { href: mailboxHref } = await older.open("older")
      const made = await older.register(mailboxHref, callback)
      const times = { since: "2020-01-01T00:00:00Z", until: "2020-01-01T00:00:00Z" }
      const body = JSON.stringify(times)
      const put = { basic: owner, body, type: "application/json" }
      const answer = await older.send("PUT", made.header("location"), put)
      expect([answer.status, answer.header("retry-after")])
        .toEqual([503, String(upgradeRetrySeconds)])
    } finally {
      await older.close()
    }
  })

  it("refuses a position that the mailbox has not given out, and any for a pause", async () => {
    await service.deposit(mailbox, "here")
    const put = (document: object) =>
      send("PUT", href, { body: JSON.stringify(document), type: "application/json" })
    for (
      const [since, detail] of [
        ["yesterday", "since must be a time"],
        ["2020-01-01T00:00:00.000000000000001Z", "has not given out this position"]
      ] as const
    ) {
      const refused = await put({ since })
      expect([since, refused.status, refused.text])
        .toEqual([since, 422, expect.stringContaining(detail)])
    }
    const both = await put({ since: "2020-01-01T00:00:00Z", status: "paused" })
    expect([both.status, both.text]).toEqual([422, expect.stringContaining("not paused")])
  })

  it("pauses none that is not verified, and none that gets another callback", async () => {
    const json = { body: JSON.stringify({ status: "paused" }), type: "application/json" }
    const mute = await service.register(mailbox, subscriber.at("mute"))
    const refused = await send("PUT", mute.header("location"), json)
    expect([refused.status, refused.text]).toEqual([
      422,
      expect.stringContaining("once its callback has answered")
    ])
    const both = JSON.stringify({ status: "paused", callback: subscriber.at("echo") })
    const moved = await send("PUT", href, { body: both, type: "application/json" })
    expect([moved.status, moved.text]).toEqual([
      422,
      expect.stringContaining("takes effect when the registration is not paused")
    ])
    expect(isActive(await send("GET", href))).toBe(true)
  })

  it("pauses and resumes by the forms of its page", async () => {
    const page = async () => (await send("GET", href, { accept: "text/html" })).text
    expect(await page()).toContain("Pause</button>")
    expect((await posted(href, { method: "put", status: "paused" })).status).toBe(303)
    const held = await page()
    expect(held).toContain("‖ paused")
    expect(held).toContain("Resume</button>")
    expect(held).not.toContain("Pause</button>")
    expect((await posted(href, { method: "put" })).status).toBe(303)
    expect(isActive(await send("GET", href))).toBe(true)
  })

  it("changes the callback, which is verified first", async () => {
    const next = subscriber.at("echo")
    const changed = await send("PUT", href, {
      body: JSON.stringify({ callback: next }),
      type: "application/json"
    })
    expect([changed.status, statusOf(changed), changed.child("callback")]).toEqual([
      200,
      "unverified",
      next
    ])
    await service.until(href, isActive)
    await service.deposit(mailbox, "to the new one")
    await eventually(() => subscriber.pushes(next), ({ length }) => length > 0)
    expect(subscriber.pushes(callback)).toEqual([])
  })

  it("verifies a callback again that did not echo", async () => {
    const mute = subscriber.at("mute")
    const location = (await service.register(mailbox, mute)).header("location")
    const asked = await service.until(location, (one) => one.child("problem") !== undefined)
    expect(statusOf(asked)).toBe("unverified")
    const repeated = await send("PUT", location)
    expect([repeated.status, statusOf(repeated)]).toEqual([200, "unverified"])
    await eventually(() => subscriber.challenges(mute), ({ length }) => length === 2)
    const [first, second] = subscriber.challenges(mute)
    expect(first?.query.get("hub.challenge")).not.toBe(second?.query.get("hub.challenge"))
  })

  it("is 412 for another state, 422 for a bad callback, 415 for a form", async () => {
    const body = registration(subscriber.at("echo"))
    const outdated = { headers: { "If-Match": "\"x\"" } }
    expect((await send("PUT", href, { body, ...outdated })).status).toBe(412)
    expect((await send("PUT", href, { headers: { "If-None-Match": "*" } })).status).toBe(412)
    expect((await send("PUT", href, { body: registration("ftp://a.example/") })).status).toBe(422)
    expect((await send("PUT", href, { body: "<mailbox/>" })).status).toBe(422)
    expect((await send("PUT", href, { body: "callback=x", type: formType })).status).toBe(415)
    expect((await send("GET", href)).child("callback")).toBe(callback)
  })
})

describe("POST …/secret", () => {
  it("shows a new secret, and both sign for a while", async () => {
    const rotated = await send("POST", `${href}/secret`)
    expect([rotated.status, rotated.header("cache-control")]).toEqual([200, "no-store"])
    const newer = rotated.child("secret") ?? ""
    expect(newer).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(newer).not.toBe(secret)
    expect(rotated.child("rotated-until")).toMatch(/^\d{4}-/)
    const answer = await send("GET", href)
    expect([answer.child("secret"), answer.child("rotated-until")]).toEqual([
      undefined,
      rotated.child("rotated-until")
    ])
    await service.deposit(mailbox, "signed twice")
    const [push] = await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
    const signature = String(push?.headers["webhook-signature"])
    expect(signature.split(" ")).toHaveLength(2)
    for (const one of [secret, newer]) {
      new Webhook(one).verify(push?.body ?? "", {
        "webhook-id": String(push?.headers["webhook-id"]),
        "webhook-timestamp": String(push?.headers["webhook-timestamp"]),
        "webhook-signature": signature
      }, { jsonParse: false })
    }
  })

  it("has a page", async () => {
    const page = await send("POST", `${href}/secret`, { accept: "text/html" })
    expect(page.status).toBe(200)
    expect(page.text).toMatch(/<code>whsec_/)
  })
})

describe("POST …/test", () => {
  const testOf = ({ xml }: { readonly xml: Element }) => childOf(xml, "test")?.attributes

  it("sends one push without a new change, and answers with its result", async () => {
    const tested = await send("POST", `${href}/test`)
    expect([tested.status, testOf(tested)]).toEqual([200, {
      status: "delivered",
      started: expect.stringMatching(/^\d{4}-/),
      code: "204",
      milliseconds: expect.stringMatching(/^\d+$/)
    }])
    const [push, ...others] = subscriber.pushes(callback)
    expect(others).toEqual([])
    expect(push?.body).toContain(`<changed mailbox="${mailbox}" time="`)
    expect(push?.body).toMatch(/ test="true"><\/changed>$/)
    const { "webhook-id": id, "webhook-signature": signature, "webhook-timestamp": time } =
      push?.headers ?? {}
    new Webhook(secret).verify(push?.body ?? "", {
      "webhook-id": String(id),
      "webhook-timestamp": String(time),
      "webhook-signature": String(signature)
    }, { jsonParse: false })
    const read = await send("GET", href)
    expect(testOf(read)).toEqual(testOf(tested))
    expect([read.child("attempts"), read.child("code")]).toEqual([tested.child("attempts"), "200"])
    const json = await send("GET", href, { accept: "application/json" })
    expect(JSON.parse(json.text).test).toMatchObject({ status: "delivered", code: "204" })
    // A 410 ends a registration only if it answers a push.
    subscriber.change(callback, "gone")
    const failed = await send("POST", `${href}/test`, { accept: "text/html" })
    expect([failed.status, failed.text]).toEqual([200, expect.stringContaining("✗ failed")])
    expect(isActive(await send("GET", href))).toBe(true)
  })

  it("is repeated by its key without another push, and has a bound in a minute", async () => {
    const headers = { "Idempotency-Key": "\"one\"" }
    for (const _ of ["first", "again"]) {
      expect((await send("POST", `${href}/test`, { headers })).status).toBe(200)
    }
    expect(subscriber.pushes(callback)).toHaveLength(1)
    for (let more = testsPerMinuteMax - 1; more > 0; more--) {
      expect((await send("POST", `${href}/test`)).status).toBe(200)
    }
    const excess = await send("POST", `${href}/test`)
    expect([excess.status, excess.header("retry-after")]).toEqual([
      429,
      expect.stringMatching(/^[1-6]?\d$/)
    ])
    expect(excess.text).toContain("registration-tests")
    expect(subscriber.pushes(callback)).toHaveLength(testsPerMinuteMax)
  })

  it("is refused to one that is not verified, and to those who may not change it", async () => {
    const unverified = (await service.register(mailbox, subscriber.at("mute"))).header("location")
    const refused = await send("POST", `${unverified}/test`)
    expect([refused.status, refused.text]).toEqual([
      409,
      expect.stringContaining("the callback has not answered the challenge")
    ])
    const page = await send("GET", unverified, { accept: "text/html" })
    expect(page.text).not.toContain(`${new URL(unverified).pathname}/test`)
    const others = { nobody: undefined, "a wrong password": "reader:wrong", bob: service.bob }
    const answered: Array<readonly [string, number]> = []
    for (const [who, basic] of Object.entries(others)) {
      const as = basic === undefined ? {} : { basic }
      answered.push([who, (await service.send("POST", `${href}/test`, as)).status])
    }
    expect(Object.fromEntries(answered))
      .toEqual({ nobody: 401, "a wrong password": 401, bob: 403 })
    expect(subscriber.pushes(callback)).toEqual([])
    const basic = `reader:${password}`
    expect((await service.send("POST", `${href}/test`, { basic })).status).toBe(200)
  })

  it("has a bound for a mailbox, which a new registration does not reset", async () => {
    const renewed = async (old: string): Promise<string> => {
      expect((await send("DELETE", old)).status).toBe(204)
      const location = (await service.register(mailbox, callback)).header("location")
      await service.until(location, isActive)
      return location
    }
    let current = href
    for (let sent = 0; sent < mailboxTestsPerMinuteMax; sent++) {
      if (sent > 0 && sent % testsPerMinuteMax === 0) current = await renewed(current)
      expect((await send("POST", `${current}/test`)).status).toBe(200)
    }
    current = await renewed(current)
    const headers = { "Idempotency-Key": "\"excess\"" }
    for (const _ of ["first", "again"]) {
      const excess = await send("POST", `${current}/test`, { headers })
      expect([excess.status, excess.header("retry-after")]).toEqual([
        429,
        expect.stringMatching(/^[1-6]?\d$/)
      ])
      expect(excess.text).toContain("registration-tests")
      expect(excess.text).toContain("all registrations of a mailbox")
    }
    // Whoever did not wait is shown the reason.
    const begun = await send("POST", `${current}/test`, { headers: { Prefer: "wait=0" } })
    expect(begun.status).toBe(202)
    const shown = await service.until(current, (one) => testOf(one)?.["status"] !== "pending")
    expect(shown.text).toContain("the registrations of this mailbox had too many tests")
    expect(subscriber.pushes(callback)).toHaveLength(mailboxTestsPerMinuteMax)
    // Those that the password has allowed are counted by themselves.
    const basic = `reader:${password}`
    const registered = await service.register(mailbox, subscriber.at("echo"), { basic })
    const theirs = registered.header("location")
    await service.until(theirs, isActive)
    expect((await service.send("POST", `${theirs}/test`, { basic })).status).toBe(200)
  })

  it("is 409 if the callback changes before the result is read", async () => {
    const release = subscriber.hold(callback, "POST")
    const testing = send("POST", `${href}/test`)
    await eventually(() => subscriber.pushes(callback), ({ length }) => length > 0)
    expect((await send("PUT", href, { body: registration(subscriber.at("echo")) })).status)
      .toBe(200)
    const answer = await testing
    release()
    expect([answer.status, answer.text]).toEqual([
      409,
      expect.stringContaining("the result of the test is not known")
    ])
  })

  it("is not shown any more once the callback is another one", async () => {
    expect(testOf(await send("POST", `${href}/test`))).toMatchObject({ status: "delivered" })
    const body = registration(subscriber.at("echo"))
    expect((await send("PUT", href, { body })).status).toBe(200)
    const moved = await service.until(href, isActive)
    expect(testOf(moved)).toBeUndefined()
    expect(testOf(await send("POST", `${href}/test`))).toMatchObject({ status: "delivered" })
    expect(subscriber.pushes(callback)).toHaveLength(1)
  })

  it("has a button on the page, which then shows the result", async () => {
    const path = new URL(href).pathname
    expect((await send("GET", href, { accept: "text/html" })).text).toContain(
      `action="${path}/test"`
    )
    const shown = await posted(`${href}/test`, {})
    expect([shown.status, shown.header("location")]).toEqual([303, href])
    const page = (await send("GET", href, { accept: "text/html" })).text
    expect(page).toMatch(/<dt>Last test<\/dt><dd>✓ delivered/)
  })
})

describe("DELETE", () => {
  it("is 204, then 410 for all; it is listed no more, and gets nothing", async () => {
    const wrong = { headers: { "If-Match": "\"x\"" } }
    expect((await send("DELETE", href, wrong)).status).toBe(412)
    const { etag } = await send("GET", href)
    const gone = await send("DELETE", href, { headers: { "If-Match": etag } })
    expect([gone.status, gone.text]).toEqual([204, ""])
    expect(gone.header("link")).toContain(`<${mailbox}>; rel="mailbox"`)
    for (const method of ["GET", "HEAD", "PUT", "DELETE"]) {
      expect((await send(method, href)).status).toBe(410)
    }
    expect((await send("POST", `${href}/secret`)).status).toBe(410)
    const listed = await send("GET", `${mailbox}/registrations`)
    expect(childrenOf(listed.xml)).toEqual([])
    const other = subscriber.at("echo")
    await service.until((await service.register(mailbox, other)).header("location"), isActive)
    await service.deposit(mailbox, "for the other")
    await eventually(() => subscriber.pushes(other), ({ length }) => length > 0)
    expect(subscriber.pushes(callback)).toEqual([])
  })
})

describe("the forms of its page", () => {
  it("lift it, or change the callback", async () => {
    const same = await posted(href, { method: "put", callback })
    expect([same.status, same.header("location")]).toEqual([303, href])
    const next = subscriber.at("mute")
    const changed = await posted(href, { method: "put", callback: next }, "application/xml")
    expect([changed.status, changed.child("callback")]).toEqual([200, next])
  })

  it("push at once what waits for its next attempt", async () => {
    subscriber.change(callback, "later")
    await service.deposit(mailbox, "waits")
    const isWaiting = (answer: Answered) => answer.child("next") !== undefined
    const waiting = await service.until(href, isWaiting)
    const inMs = Date.parse(waiting.child("next") ?? "") - Date.now()
    expect(inMs).toBeGreaterThan(600_000)
    expect((await send("GET", href, { accept: "text/html" })).text).toContain(">Push now</button>")
    subscriber.change(callback, "echo")
    expect((await posted(href, { method: "put" })).status).toBe(303)
    const pushed = await service.until(href, (answer) => answer.child("cursor") === "1")
    expect([isWaiting(pushed), isActive(pushed)]).toEqual([false, true])
    const [first, second, ...more] = subscriber.pushes(callback).map(({ body }) => body)
    expect([second, more]).toEqual([first, []])
    expect((await send("GET", href, { accept: "text/html" })).text).not.toContain("Push now")
  })

  it("end it", async () => {
    const gone = await posted(href, { method: "delete" })
    expect([gone.status, gone.header("location")]).toEqual([303, `${mailbox}/registrations`])
    expect((await send("GET", href)).status).toBe(410)
  })

  it("do nothing else", async () => {
    expect((await posted(href, { method: "patch" })).status).toBe(422)
    expect((await send("POST", href, { body: registration(callback) })).status).toBe(422)
    expect((await posted(href, { method: "put", callback: "nowhere" })).status).toBe(422)
    const forged = await send("POST", href, {
      type: formType,
      body: "method=delete",
      headers: { Origin: "http://other.example" }
    })
    expect(forged.status).toBe(403)
    expect((await send("GET", href)).status).toBe(200)
  })
})
