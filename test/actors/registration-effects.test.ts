/** Registrations in a running system with their mailbox, and a scripted callback. */
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import { Webhook } from "standardwebhooks"
import { afterEach, describe, expect, it } from "vitest"
import { pushCharsMax, testTopicItemsMax } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { mailbox } from "../../actors/mailbox/actor.ts"
import { parseSince } from "../../actors/mailbox/cursor.ts"
import { notificationId } from "../../actors/mailbox/log-item.ts"
import type { MailboxMessage } from "../../actors/mailbox/protocol.ts"
import type { DeliveryOutcome, FetchOutcome, Outbound,
  TextContent } from "../../actors/outbound/protocol.ts"
import { registration } from "../../actors/registration/actor.ts"
import type { RegistrationMessage, RegistrationReply,
  RegistrationView } from "../../actors/registration/protocol.ts"
import { notificationDocuments } from "../../http/documents.ts"
import { address, type SystemApi } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { dropAll, type Rig, start, until } from "../runtime/rig.ts"
import { hash } from "./cells.ts"
import { textContentOf } from "./contents.ts"
import { defaultSettings } from "./mailbox-settings.ts"
import { testKeyring, testVapid } from "./dependencies.ts"

afterEach(dropAll)

const base = "http://localhost:8080"
const callback = "http://example.org/hook?key=1#part"
const self = address("registration", "alice=r".padEnd(28, "1"))
const alice = address("mailbox", "alice")
const reader = { account: "alice" }
const secret = `whsec_${Buffer.alloc(32, "key").toString("base64")}`

/** Who is called back. */
class Receiver implements Outbound {
  readonly gets: Array<URL> = []
  readonly posts: Array<TextContent & { readonly uri: string }> = []
  echoes = true
  /** What comes of the next pushes; Delivered when empty. */
  readonly outcomes: Array<DeliveryOutcome> = []
  /** Pushes are answered when it is resolved. */
  answering: Promise<void> = Promise.resolve()

  readonly head: Outbound["head"] = () => Effect.never

  readonly get: Outbound["get"] = ({ uri }) =>
    Effect.sync((): FetchOutcome => {
      const url = new URL(uri)
      this.gets.push(url)
      const text = this.echoes ? url.searchParams.get("hub.challenge") ?? "" : "no"
      return {
        _tag: "Fetched",
        fetched: { uri, code: 200, type: "text/plain", bytes: Buffer.from(text) }
      }
    })

  readonly post: Outbound["post"] = (posting) =>
    Effect.gen({ self: this }, function*() {
      const content = yield* textContentOf(posting)
      if (content === undefined) {
        return { _tag: "PermanentFailure", problem: "no longer wanted" } as const
      }
      this.posts.push({ uri: posting.uri, ...content })
      yield* Effect.promise(() => this.answering)
      return this.outcomes.shift() ?? { _tag: "Delivered", code: 200 }
    })
}

class World {
  readonly receiver = new Receiver()
  private readonly storage = makeMemoryStorage()
  private rig: Rig | undefined
  private deposits = 0

  private get system(): SystemApi {
    if (this.rig === undefined) throw new Error("the system does not run")
    return this.rig.system
  }

  /** Starts a system on the store, in place of the one that runs. */
  async restart(): Promise<void> {
    await this.rig?.drop()
    const { receiver, storage } = this
    const links = linksUnder(base)
    const documents = notificationDocuments
    const deps = {
      outbound: receiver,
      links,
      keyring: testKeyring,
      documents,
      vapid: testVapid,
      schedule: [0, 5],
      random: () => 0.5,
      records: { write: () => Effect.void }
    }
    const behaviors = [
      mailbox({ notificationsMax: 1_000, anonymousBytesMax: 1e9 }),
      registration(deps)
    ]
    this.rig = await start({ behaviors }, { storage })
  }

  static async make(): Promise<World> {
    const world = new World()
    await world.restart()
    await world.tell({
      _tag: "Create",
      requestId: "m",
      owner: "alice",
      settings: defaultSettings,
      passwordHash: hash("password"),
      sharedHash: hash("shared")
    })
    return world
  }

  tell(message: MailboxMessage): Promise<unknown> {
    return Effect.runPromise(this.system.ask(alice, message))
  }

  ask(message: RegistrationMessage): Promise<RegistrationReply> {
    // A registration answers in its own protocol.
    return Effect.runPromise(this.system.ask(self, message)) as Promise<RegistrationReply>
  }

  async deposit(text = ""): Promise<string> {
    const n = ++this.deposits
    const part = (of: string) => `${of}${n}`.padEnd(22, "_")
    const fragment = `<item>${n}${text}</item>`
    await this.tell({ _tag: "Deposit", fragment, digest: part("d"), idRandom: part("r") })
    return `${base}/mailboxes/alice/notifications/${notificationId(n, part("r"))}`
  }

  async register(
    form: "native" | "websub" = "native",
    leaseSeconds = 0,
    topicFormat?: "atom",
    secretsVersion?: number
  ): Promise<void> {
    await this.ask({
      _tag: "Create",
      requestId: `q${secretsVersion ?? ""}`,
      form,
      callback,
      ...topicFormat === undefined ? {} : { topicFormat },
      ...secretsVersion === undefined ? {} : { secretsVersion },
      secret,
      leaseSeconds,
      challenge: "the challenge",
      cursor: this.deposits
    })
    await this.tell({ _tag: "Register", id: self.id, reader })
  }

  async view(): Promise<RegistrationView> {
    const reply = await this.ask({ _tag: "Describe" })
    if (reply._tag !== "Described") throw new Error(`it answers ${JSON.stringify(reply)}`)
    return reply.view
  }

  /** Waits for so many pushes. */
  async pushes(count: number): Promise<Receiver["posts"]> {
    await until(() => this.receiver.posts.length >= count)
    return this.receiver.posts
  }

  async listed(): Promise<ReadonlyArray<string>> {
    const reply = await this.tell({ _tag: "Registrations", reader }) as { ids: Array<string> }
    return reply.ids
  }
}

const hrefs = (body: string, of: string): ReadonlyArray<string | undefined> =>
  [...body.matchAll(new RegExp(`<${of} href="([^"]*)"`, "g"))].map(([, href]) => href)

describe("a registration in a system", () => {
  it("verifies its callback, then pushes what comes, signed, with a cursor", async () => {
    const world = await World.make()
    await world.deposit()
    await world.register()
    await until(async () => (await world.view()).status === "active")
    const [asked] = world.receiver.gets
    expect(asked?.href).toMatch(/^http:\/\/example\.org\/hook\?key=1&hub\.mode=subscribe&[^#]*$/)
    expect(Object.fromEntries(asked?.searchParams ?? [])).toMatchObject({
      "hub.topic": `${base}/mailboxes/alice`,
      "hub.challenge": "the challenge",
      "hub.lease_seconds": "315360000"
    })
    const second = await world.deposit()
    const [push] = await world.pushes(1)
    const { body = "", headers = {}, uri } = push ?? {}
    expect(uri).toBe(callback)
    const at = new Date(Number(headers["webhook-timestamp"]) * 1000)
    expect(headers["webhook-signature"])
      .toBe(new Webhook(secret).sign(headers["webhook-id"] ?? "", at, body))
    expect(hrefs(body, "notification")).toEqual([second])
    expect(body).toContain("<item>2</item></notification></changed>")
    expect(headers["Link"]).toBe(
      `<${base}/mailboxes/alice/registrations>; rel="hub", <${base}/mailboxes/alice>; rel="self"`
    )
    const time = /time="([^"]*)"/.exec(body)?.[1] ?? ""
    expect(parseSince(time)).toMatchObject({ _tag: "After", n: 2 })
    await until(async () => (await world.view()).cursor === 2)
  })

  it("pushes nothing to a callback that does not echo, until it does", async () => {
    const world = await World.make()
    world.receiver.echoes = false
    await world.register()
    await until(async () => (await world.view()).problem !== undefined)
    const href = await world.deposit()
    expect(await world.view()).toMatchObject({
      status: "unverified",
      problem: "the callback did not echo the challenge"
    })
    expect(world.receiver.posts).toEqual([])
    world.receiver.echoes = true
    await world.ask({ _tag: "Update", challenge: "another" })
    const [push] = await world.pushes(1)
    expect(hrefs(push?.body ?? "", "notification")).toEqual([href])
  })

  it("pushes again what failed, the same, then all that came meanwhile", async () => {
    const world = await World.make()
    await world.register()
    let answer = () => {}
    world.receiver.answering = new Promise((resolve) => answer = resolve)
    world.receiver.outcomes.push({ _tag: "RetryableFailure", problem: "reset" })
    const all = [await world.deposit()]
    await world.pushes(1)
    for (let left = 130; left > 0; left--) all.push(await world.deposit())
    answer()
    const pushes = await world.pushes(4)
    const [first, again, ...rest] = pushes.map(({ body }) => hrefs(body, "notification"))
    expect(again).toEqual(first)
    expect(pushes[1]?.body).toBe(pushes[0]?.body)
    expect(pushes[1]?.headers["webhook-id"]).toBe(pushes[0]?.headers["webhook-id"])
    expect(new Set(pushes.map(({ headers }) => headers["webhook-id"])).size).toBe(3)
    expect([...first ?? [], ...rest.flat()]).toEqual(all)
    expect(rest.map(({ length }) => length)).toEqual([100, 30])
    await until(async () => (await world.view()).cursor === 131)
  })

  it("tells what was removed, and that the mailbox was", async () => {
    const world = await World.make()
    const href = await world.deposit()
    await world.register()
    await until(async () => (await world.view()).status === "active")
    await world.tell({ _tag: "Remove", n: 1, idRandom: "r1".padEnd(22, "_"), reader })
    const [push] = await world.pushes(1)
    expect(hrefs(push?.body ?? "", "removed")).toEqual([href])
    expect(hrefs(push?.body ?? "", "notification")).toEqual([])
    await world.tell({ _tag: "Destroy", caller: { account: "alice", admin: false } })
    const [, last] = await world.pushes(2)
    expect(last?.body).toMatch(
      /<changed mailbox="[^"]*\/alice" time="[^"]*"><deleted\/><\/changed>$/
    )
    await until(async () => "reason" in await world.ask({ _tag: "Describe" }))
    expect(await world.ask({ _tag: "Describe" })).toMatchObject({ reason: "Gone" })
  })

  it("ends with a 410, and its mailbox forgets it", async () => {
    const world = await World.make()
    await world.register()
    expect(await world.listed()).toEqual([self.id.slice("alice=".length)])
    world.receiver.outcomes.push({ _tag: "PermanentFailure", code: 410, problem: "gone" })
    await world.deposit()
    await until(async () => (await world.listed()).length === 0)
    await world.deposit()
    expect(world.receiver.posts.length).toBe(1)
  })

  it("sends a test event once, past what waits, and keeps its result over a restart", async () => {
    const world = await World.make()
    await world.register()
    await until(async () => (await world.view()).status === "active")
    await world.deposit()
    await until(async () => (await world.view()).cursor === 1)
    // The next push fails, and waits; the test must not promise what it has.
    world.receiver.outcomes.push({ _tag: "RetryableFailure", problem: "busy", retryAfterMs: 1e9 })
    await world.deposit()
    await until(async () => (await world.view()).attempts === 1)
    world.receiver.outcomes.push({ _tag: "PermanentFailure", code: 410, problem: "gone" })
    for (const _ of ["it", "its repetition"]) await world.ask({ _tag: "Test", id: "t1" })
    await until(async () => (await world.view()).test?.status === "failed")
    const [, , test, ...others] = world.receiver.posts
    expect(others).toEqual([])
    const { body = "", headers = {} } = test ?? {}
    expect(body).toMatch(/<changed mailbox="[^"]*\/alice" time="[^"]*" test="true"><\/changed>$/)
    expect(parseSince(/time="([^"]*)"/.exec(body)?.[1] ?? "")).toMatchObject({ n: 1 })
    const at = new Date(Number(headers["webhook-timestamp"]) * 1000)
    expect(headers["webhook-signature"])
      .toBe(new Webhook(secret).sign(headers["webhook-id"] ?? "", at, body))
    // A 410 to a test does not end the registration.
    const found = { status: "active", attempts: 1, cursor: 1, problem: "busy" }
    expect(await world.view()).toMatchObject({ ...found, test: { code: 410, problem: "gone" } })
    await world.restart()
    expect(await world.view()).toMatchObject({ ...found, test: { code: 410, problem: "gone" } })
    await world.ask({ _tag: "Test", id: "t2" })
    await until(async () => (await world.view()).test?.status === "delivered")
    expect(world.receiver.posts.at(-1)?.headers["webhook-id"]).not.toBe(headers["webhook-id"])
  })

  it("sends no test event once the secret that allowed it has changed", async () => {
    const world = await World.make()
    await world.register("native", 0, undefined, 0)
    await until(async () => (await world.view()).status === "active")
    await world.tell({
      _tag: "ChangeSecrets",
      caller: { account: "alice", admin: false },
      passwordHash: hash("p2"),
      sharedHash: hash("s2")
    })
    await world.ask({ _tag: "Test", id: "t1" })
    await until(async () => (await world.listed()).length === 0)
    expect(world.receiver.posts).toEqual([])
  })

  it("shows a WebSub subscriber the topic as a test event", async () => {
    const world = await World.make()
    for (let left = testTopicItemsMax + 2; left > 0; left--) await world.deposit()
    await world.register("websub", 3_600, "atom")
    await until(async () => (await world.view()).status === "active")
    await world.ask({ _tag: "Test", id: "t1" })
    const [test] = await world.pushes(1)
    expect(test?.body.match(/<entry>/g)).toHaveLength(testTopicItemsMax)
    expect(test?.body).toMatch(/<id>[^<]*\/notifications\/m-r22_+<\/id>/)
    const expected = createHmac("sha256", secret).update(test?.body ?? "").digest("hex")
    expect(test?.headers["X-Hub-Signature"]).toBe(`sha256=${expected}`)
  })

  it("shows the last ones, also where not all of them fit one push", async () => {
    const world = await World.make()
    const text = "x".repeat(Math.ceil(pushCharsMax / (testTopicItemsMax - 2)))
    const all: Array<string> = []
    for (let left = testTopicItemsMax; left > 0; left--) all.push(await world.deposit(text))
    await world.register("websub", 3_600)
    await until(async () => (await world.view()).status === "active")
    await world.ask({ _tag: "Test", id: "t1" })
    const [{ body = "" } = {}] = await world.pushes(1)
    const shown = all.filter((href) => body.includes(href))
    expect(shown.length).toBeGreaterThan(0)
    expect(shown).toEqual(all.slice(-shown.length))
  })

  it.each([0, testTopicItemsMax + 2])(
    "shows nothing that is still to be pushed after %i notifications, nor its time",
    async (acknowledged) => {
      const world = await World.make()
      const all: Array<string> = []
      for (let left = acknowledged; left > 0; left--) all.push(await world.deposit())
      await world.register("websub", 3_600)
      await until(async () => (await world.view()).status === "active")
      world.receiver.outcomes.push({ _tag: "RetryableFailure", problem: "no", retryAfterMs: 1e9 })
      for (const _ of ["the push that fails", "what comes after it"]) {
        all.push(await world.deposit())
        await until(async () => (await world.view()).attempts === 1)
      }
      await world.ask({ _tag: "Test", id: "t1" })
      const [, { body = "" } = {}] = await world.pushes(2)
      expect(all.filter((href) => body.includes(href)))
        .toEqual(all.slice(Math.max(0, acknowledged - testTopicItemsMax), acknowledged))
      expect(parseSince(/ time="([^"]*)"/.exec(body)?.[1] ?? "")).toMatchObject({ n: acknowledged })
    }
  )

  it("pushes nothing once the secret that allowed it has changed, over restarts", async () => {
    const world = await World.make()
    await world.register("native", 0, undefined, 0)
    await until(async () => (await world.view()).status === "active")
    world.receiver.outcomes.push({ _tag: "RetryableFailure", problem: "busy", retryAfterMs: 1e9 })
    await world.deposit()
    // The push waits for its next attempt.
    await until(async () => (await world.view()).attempts === 1)
    await world.restart()
    await world.tell({
      _tag: "ChangeSecrets",
      caller: { account: "alice", admin: false },
      passwordHash: hash("p2"),
      sharedHash: hash("s2")
    })
    await world.deposit()
    await until(async () => (await world.listed()).length === 0)
    expect(world.receiver.posts).toHaveLength(1)
    await world.register("native", 0, undefined, 1)
    await world.restart()
    await world.deposit()
    expect(await world.pushes(2)).toHaveLength(2)
  })

  it("signs as WebSub does, and leaves when the subscriber says so", async () => {
    const world = await World.make()
    await world.register("websub", 3_600)
    await until(async () => (await world.view()).leaseUntilMs !== undefined)
    expect(world.receiver.gets[0]?.searchParams.get("hub.lease_seconds")).toBe("3600")
    await world.deposit()
    const [push] = await world.pushes(1)
    const expected = createHmac("sha256", secret).update(push?.body ?? "").digest("hex")
    expect(push?.headers["X-Hub-Signature"]).toBe(`sha256=${expected}`)
    expect(push?.headers).not.toHaveProperty("webhook-signature")
    await world.ask({ _tag: "Unsubscribe", challenge: "leaving" })
    await until(async () => (await world.listed()).length === 0)
    expect(world.receiver.gets.at(-1)?.searchParams.get("hub.mode")).toBe("unsubscribe")
  })

  it("pushes the topic's new notifications only, and skips other changes", async () => {
    const world = await World.make()
    await world.deposit()
    await world.register("websub", 3_600, "atom")
    await until(async () => (await world.view()).status === "active")
    expect(world.receiver.gets[0]?.searchParams.get("hub.topic"))
      .toBe(`${base}/mailboxes/alice?format=atom`)
    await world.tell({ _tag: "Remove", n: 1, idRandom: "r1".padEnd(22, "_"), reader })
    await until(async () => (await world.view()).cursor === 2)
    expect(world.receiver.posts).toEqual([])
    await world.deposit()
    const [push] = await world.pushes(1)
    expect(push?.headers["Content-Type"]).toBe("application/atom+xml; charset=utf-8")
    expect(push?.headers["Link"]).toContain(`<${base}/mailboxes/alice?format=atom>; rel="self"`)
    expect(push?.body.match(/<entry>/g)).toHaveLength(1)
    expect(push?.body).toMatch(/<id>[^<]*\/notifications\/3-r2_+<\/id>/)
    await until(async () => (await world.view()).cursor === 3)
    await world.tell({ _tag: "Destroy", caller: { account: "alice", admin: false } })
    await until(async () => "reason" in await world.ask({ _tag: "Describe" }))
    expect(world.receiver.posts).toHaveLength(1)
    await until(() => world.receiver.gets.at(-1)?.searchParams.get("hub.mode") === "denied")
    expect(Object.fromEntries(world.receiver.gets.at(-1)?.searchParams ?? [])).toMatchObject({
      "hub.topic": `${base}/mailboxes/alice?format=atom`,
      "hub.reason": "the mailbox has been removed"
    })
  })

  it("is taken off the list of a mailbox that knows one that never was", async () => {
    const world = await World.make()
    await world.tell({ _tag: "Register", id: self.id, reader })
    await world.deposit()
    await until(async () => (await world.listed()).length === 0)
  })
})
