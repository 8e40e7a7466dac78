/** What an outgoing notification does outside and to its peers, on the runtime in memory. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { afterEach, describe, expect, it } from "vitest"
import { cachedDocumentCharsMax } from "../../actors/limits.ts"
import { Keyring } from "../../actors/keyring.ts"
import { linksUnder } from "../../actors/links.ts"
import { mailbox, mailboxKind } from "../../actors/mailbox/actor.ts"
import { decodeItem, notificationId } from "../../actors/mailbox/log-item.ts"
import type { OwnerSettings } from "../../actors/mailbox/protocol.ts"
import { notification, notificationKind } from "../../actors/notification/actor.ts"
import { documentOf } from "../../actors/notification/decide.ts"
import { withdrawalFragment } from "../../actors/notification/follow-ups.ts"
import { deliverLocally } from "../../actors/notification/local-delivery.ts"
import type { NotificationMessage, NotificationReply,
  NotificationView } from "../../actors/notification/protocol.ts"
import type { DeliveryOutcome, OutboundContent } from "../../actors/outbound/protocol.ts"
import { sealPasswordFor, withSealedPassword } from "../../actors/sealed-fragment.ts"
import { type Address, address, type Peers, type RecordChange,
  type Tagged } from "../../runtime/index.ts"
import { dropAll, start, until } from "../runtime/rig.ts"
import { hash as hashMark } from "./cells.ts"
import { noDependencies, testKeyring } from "./dependencies.ts"
import { contentOf } from "./contents.ts"
import { defaultSettings } from "./mailbox-settings.ts"

afterEach(dropAll)

const links = linksUnder("https://post.test")
const caller = { account: "alice", admin: false }
const fragment = "<item><description>d</description></item>"
const document = `<notification>${fragment}</notification>`
const here = address(notificationKind, "n1")
const elsewhere = "https://example.org/inbox"
const traceId = "ab".repeat(16)

type Post = OutboundContent & { readonly uri: string; readonly discovers: boolean }

/** A mailbox that a target led to. */
interface Found {
  readonly _tag: "Found"
  readonly uri: string
}

/** A system whose outbound posts are answered by the test. */
const startRelays = async (
  answer: (post: Post, count: number) => DeliveryOutcome | Found,
  schedule: ReadonlyArray<number> = [0, 1, 1]
) => {
  const posts: Array<Post> = []
  const written = new Map<string, string | null>()
  const write = (changes: ReadonlyArray<RecordChange>) =>
    Effect.sync(() => {
      for (const { key, table, value } of changes) written.set(`${table}:${key}`, value)
    })
  const refused: DeliveryOutcome = { _tag: "PermanentFailure", problem: "no longer wanted" }
  const relays = notification({
    documents: noDependencies.documents,
    keyring: testKeyring,
    outbound: {
      post: (posting) =>
        Effect.gen(function*() {
          const content = yield* contentOf(posting)
          if (content === undefined) return refused
          const { discovers = false, uri } = posting
          const post: Post = { uri, discovers, ...content }
          posts.push(post)
          const came = answer(post, posts.length)
          if (came._tag !== "Found") return came
          return yield* posting.deliverLocally?.(came.uri) ?? Effect.succeed(refused)
        }),
      get: () => Effect.succeed({ _tag: "RetryableFailure", problem: "never asked" }),
      head: () => Effect.never
    },
    links,
    schedule,
    retentionMs: 3_600_000,
    records: { write },
    random: () => 0.5
  })
  const behaviors = [relays, mailbox({ notificationsMax: 2, anonymousBytesMax: 1e9 })]
  const { system } = await start({ behaviors })
  const peers: Peers = {
    ask: (to, message) => system.ask(to, message),
    read: (of, from, limit) => system.read(of, from, limit)
  }
  const ask = <Sent extends Tagged>(to: Address, message: Sent): Promise<unknown> =>
    Effect.runPromise(system.ask(to, message))
  const describe = async (id = "n1"): Promise<NotificationView> => {
    const message: NotificationMessage = { _tag: "Describe", caller }
    // It exists, so that the reply is no refusal.
    const reply = await ask(address(notificationKind, id), message) as NotificationReply
    if (reply._tag !== "Described") throw new Error(reply._tag)
    return reply.view
  }
  return {
    ask,
    peers,
    posts,
    written,
    describe,
    create: (to: ReadonlyArray<string>, given = document, id = "n1") =>
      ask(address(notificationKind, id), {
        _tag: "Create",
        requestId: "r",
        account: "alice",
        listingKey: `alice/${id}`,
        traceId,
        document: given,
        to
      }),
    ended: async (id = "n1"): Promise<NotificationView> => {
      await until(async () => (await describe(id)).status !== "waiting")
      return describe(id)
    },
    open: (name: string, settings: Partial<OwnerSettings> = {}) =>
      ask(address(mailboxKind, name), {
        _tag: "Create",
        requestId: "r",
        owner: "bob",
        settings: { ...defaultSettings, ...settings },
        passwordHash: hashMark("password"),
        sharedHash: createHash("sha256").update("secret").digest("base64url")
      }),
    stored: (name: string) =>
      Effect.runPromise(system.read(address(mailboxKind, name), 1, 10)).then((items) =>
        items.map(({ n, value }) => ({ n, ...decodeItem(value) }))
      )
  }
}

const delivered = (): DeliveryOutcome => ({
  _tag: "Delivered",
  code: 202,
  location: `${elsewhere}/1`
})

describe("an attempt over HTTP", () => {
  it("posts the document, with a key that stays and a trace", async () => {
    const faulted: DeliveryOutcome = {
      _tag: "RetryableFailure",
      code: 503,
      problem: "answered 503"
    }
    const relays = await startRelays((_, count) => count < 3 ? faulted : delivered())
    await relays.create([elsewhere])
    const view = await relays.ended()
    expect(view.recipients).toMatchObject([
      { status: "success", attempts: 3, code: 202, location: `${elsewhere}/1` }
    ])
    expect(relays.posts).toHaveLength(3)
    const keys = new Set(relays.posts.map(({ headers }) => headers["Idempotency-Key"]))
    expect(keys.size).toBe(1)
    expect([...keys][0]).toMatch(/^"[A-Za-z0-9_-]{43}"$/)
    const traces = relays.posts.map(({ headers }) => headers["traceparent"] ?? "")
    expect(new Set(traces).size).toBe(3)
    for (const trace of traces) expect(trace).toMatch(/^00-(ab){16}-[0-9a-f]{16}-01$/)
    for (const { body, discovers, headers, uri } of relays.posts) {
      expect(uri).toBe(elsewhere)
      expect(body).toBe(document)
      expect(discovers).toBe(true)
      expect(headers["Content-Type"]).toBe("text/xml+rss; charset=utf-8")
    }
    await until(() => relays.written.get("outgoing:alice/n1") === "sent")
  })

  it("is handed over where a page leads to a mailbox of this service, once", async () => {
    const leads = (uri: string) => ({ _tag: "Found", uri }) as const
    const relays = await startRelays(({ uri }) =>
      leads(uri.endsWith("/away") ? "https://example.net/box" : links.mailbox("bob"))
    )
    await relays.open("bob")
    const pages = ["https://bob.example/", "https://bob.example/about", links.mailbox("bob")]
    await relays.create([...pages, "https://bob.example/away"])
    const { recipients } = await relays.ended()
    const [stored] = await relays.stored("bob")
    expect(await relays.stored("bob")).toEqual([expect.objectContaining({ n: 1, fragment })])
    const location = links.stored("bob", notificationId(1, stored?.idRandom ?? ""))
    const success = { status: "success", attempts: 1, code: 202, location }
    expect(recipients).toMatchObject([success, success, success, { status: "failed" }])
    expect(relays.posts.map(({ uri }) => uri).sort()).toEqual([
      "https://bob.example/",
      "https://bob.example/about",
      "https://bob.example/away"
    ])
  })

  it("reads a large document, and gives each recipient and notification its own key", async () => {
    const large = `<notification>${"x".repeat(cachedDocumentCharsMax)}</notification>`
    const relays = await startRelays(delivered)
    await relays.create([elsewhere, `${elsewhere}/2`], large)
    await relays.create([elsewhere], large, "n2")
    await relays.ended()
    await relays.ended("n2")
    expect(relays.posts.map(({ body }) => body)).toEqual([large, large, large])
    expect(new Set(relays.posts.map(({ headers }) => headers["Idempotency-Key"])).size).toBe(3)
  })

  it("gives up at a refusal, and is tried again by hand with the same key", async () => {
    const refused: DeliveryOutcome = {
      _tag: "PermanentFailure",
      code: 410,
      problem: "answered 410"
    }
    const relays = await startRelays((_, count) => count === 1 ? refused : delivered())
    await relays.create([elsewhere])
    expect((await relays.ended()).status).toBe("failed")
    await until(() => relays.written.get("outgoing:alice/n1") === "failed")
    const retry: NotificationMessage = { _tag: "Retry", caller }
    expect(await relays.ask(here, retry)).toEqual({
      _tag: "Retried",
      recipients: 1,
      isRepeated: false
    })
    expect((await relays.ended()).recipients).toMatchObject([{ status: "success", attempts: 2 }])
    const [first, second] = relays.posts.map(({ headers }) => headers["Idempotency-Key"])
    expect(first).toBe(second)
    await until(() => relays.written.get("outgoing:alice/n1") === "sent")
  })

  it("starts none once it is removed", async () => {
    const relays = await startRelays(delivered, [3_600_000])
    await relays.create([elsewhere])
    const remove: NotificationMessage = { _tag: "Delete", caller }
    expect(await relays.ask(here, remove)).toEqual({ _tag: "Done" })
    await until(() => relays.written.get("outgoing:alice/n1") === null)
    expect(relays.posts).toEqual([])
  })
})

describe("a recipient of this service", () => {
  const recipientOf = async (
    relays: Awaited<ReturnType<typeof startRelays>>,
    to: string
  ) => {
    await relays.create([to])
    await until(async () => (await relays.describe()).recipients[0]?.attempts !== 0)
    return (await relays.describe()).recipients[0]
  }

  it("has it handed over, not over HTTP; what is repeated finds the first copy", async () => {
    const relays = await startRelays(delivered)
    await relays.open("bob")
    await relays.open("carl", { deposit: "accounts" })
    await relays.create([links.mailbox("bob"), links.mailbox("carl"), elsewhere])
    const view = await relays.ended()
    const [stored] = await relays.stored("bob")
    expect(stored?.fragment).toBe(fragment)
    expect(view.recipients).toMatchObject([
      {
        status: "success",
        code: 202,
        location: links.stored("bob", notificationId(1, stored?.idRandom ?? ""))
      },
      { status: "success" },
      { status: "success", location: `${elsewhere}/1` }
    ])
    expect(relays.posts).toHaveLength(1)
    const [{ digest, idRandom } = { digest: "", idRandom: "" }] = await relays.stored("bob")
    const again = { _tag: "Deposit", fragment, digest, idRandom, account: "alice" }
    const bob = address(mailboxKind, "bob")
    const repeated = { n: 1, repeated: true }
    expect(await relays.ask(bob, again)).toMatchObject(repeated)
    await relays.ask(bob, { _tag: "Remove", n: 1, idRandom, reader: { account: "bob" } })
    expect(await relays.ask(bob, again)).toMatchObject(repeated)
    expect(await relays.stored("bob")).toEqual([])
  })

  it("gets two notifications of the same content as two", async () => {
    const relays = await startRelays(delivered)
    await relays.open("bob")
    await relays.create([links.mailbox("bob")])
    await relays.create([links.mailbox("bob")], document, "n2")
    await relays.ended()
    await relays.ended("n2")
    expect(await relays.stored("bob")).toHaveLength(2)
  })

  it("is found by its secret URI, and a wrong one is no mailbox", async () => {
    const relays = await startRelays(delivered)
    await relays.open("bob")
    await relays.create([`${links.mailbox("bob")}~secret`, `${links.mailbox("bob")}~wrong`])
    expect((await relays.ended()).recipients).toMatchObject([
      { status: "success" },
      { status: "failed", code: 404 }
    ])
    expect(await relays.stored("bob")).toHaveLength(1)
  })

  it.each([
    ["an unknown mailbox", "/mailboxes/nobody", 404],
    ["a resource that is no mailbox", "/content/abc", 405],
    ["the service itself", "", 405]
  ])("fails for %s", async (_, path, code) => {
    const relays = await startRelays(delivered)
    const recipient = await recipientOf(relays, `https://post.test${path}`)
    expect(recipient).toMatchObject({ status: "failed", code })
    expect(relays.posts).toEqual([])
  })

  it("fails for a mailbox that was deleted", async () => {
    const relays = await startRelays(delivered)
    await relays.open("bob")
    const owner = { account: "bob", admin: false }
    await relays.ask(address(mailboxKind, "bob"), { _tag: "Destroy", caller: owner })
    expect(await recipientOf(relays, links.mailbox("bob"))).toMatchObject({ code: 410 })
  })

  it("is tried again while it is full", async () => {
    const relays = await startRelays(delivered, [0, 3_600_000])
    await relays.open("bob")
    for (const id of ["n2", "n3"]) {
      await relays.create([links.mailbox("bob")], document, id)
      await relays.ended(id)
    }
    const recipient = await recipientOf(relays, links.mailbox("bob"))
    expect(recipient).toMatchObject({ status: "retry", code: 507 })
  })
})

describe("a message whose password no key opens", () => {
  it("is sent nowhere without it: each attempt fails, until the key is back", async () => {
    const relays = await startRelays(delivered)
    await relays.open("bob")
    const lost = sealPasswordFor(new Keyring([Buffer.alloc(32, "lost")]), here)("words")
    const without = "<item><password></password></item>"
    const stored = withSealedPassword(without, "<item><password>".length, lost)
    await relays.create([elsewhere, "https://post.test/mailboxes/bob"], documentOf(stored))
    const problem = "the key of the message password is missing at this service"
    expect((await relays.ended()).recipients).toMatchObject([
      { status: "failed", attempts: 3, problem },
      { status: "failed", attempts: 3, problem }
    ])
    expect(relays.posts).toEqual([])
    expect(await relays.stored("bob")).toEqual([])
  })
})

describe("a follow-up", () => {
  const itemOf = (name: string, more = ""): string =>
    `<item><description>${name}</description><url>http://a.test/${name}</url>${more}</item>`
  type Relays = Awaited<ReturnType<typeof startRelays>>
  /** Without a replacement it is a withdrawal. */
  const follow = async (relays: Relays, replacement?: string): Promise<NotificationView> => {
    const given = replacement === undefined ? {} : { document: documentOf(replacement) }
    const requestId = `follow ${replacement}`
    const message: NotificationMessage = { _tag: "FollowUp", caller, requestId, ...given }
    expect(await relays.ask(here, message)).toEqual({ _tag: "FollowedUp", isRepeated: false })
    return relays.ended()
  }
  const uriOf = (one: { readonly n: number; readonly idRandom: string } | undefined): string =>
    links.stored("bob", notificationId(one?.n ?? 0, one?.idRandom ?? ""))
  const sentToBob = async (relays: Relays) => {
    await relays.open("bob")
    await relays.create([links.mailbox("bob")], documentOf(itemOf("one")))
    await relays.ended()
    return (await relays.stored("bob"))[0]
  }

  it("takes the place of the first one in a mailbox here, as does a withdrawal", async () => {
    const relays = await startRelays(delivered)
    const first = await sentToBob(relays)
    const view = await follow(relays, itemOf("two"))
    expect(view.recipients).toMatchObject([{ status: "success", attempts: 2, code: 202 }])
    const replaced = await relays.stored("bob")
    expect(replaced).toMatchObject([{
      n: 2,
      account: "alice",
      fragment: itemOf("two").replace("</url>", `</url><replaces>${uriOf(first)}</replaces>`)
    }])
    await follow(relays)
    const withdrawn = await relays.stored("bob")
    expect(withdrawn).toMatchObject([{ n: 3, account: "alice" }])
    const uri = uriOf(replaced[0])
    expect(withdrawn[0]?.fragment).toContain(`<url>${uri}</url><replaces>${uri}</replaces>`)
    expect(withdrawn[0]?.fragment).toMatch(/<withdrawn>\d{4}-\d\d-\d\dT[\d:.]+Z<\/withdrawn>/)
    expect(withdrawn[0]?.fragment).not.toContain("a.test")
    expect(relays.posts).toEqual([])
  })

  it("leaves out a mailbox whose reader has removed the first one, each time", async () => {
    const relays = await startRelays(delivered)
    const first = await sentToBob(relays)
    const reader = { account: "bob" }
    await relays.ask(address(mailboxKind, "bob"), { _tag: "Remove", ...first, reader })
    for (const replacement of [itemOf("two"), itemOf("three"), undefined]) {
      const view = await follow(relays, replacement)
      expect(view.recipients).toMatchObject([{ status: "success", code: 202 }])
      expect(await relays.stored("bob")).toEqual([])
    }
  })

  it("finds itself when its first reply was lost, and the next one replaces it", async () => {
    const relays = await startRelays(delivered)
    const first = await sentToBob(relays)
    await follow(relays, itemOf("two"))
    const { documents } = noDependencies
    const known = { edition: 1, item: 2, isWithdrawal: false, isKnown: true, earlierItem: 1 }
    const repeated = await Effect.runPromise(
      deliverLocally(relays.peers, { links, keyring: testKeyring, documents }, {
        from: here,
        to: links.mailbox("bob"),
        account: "alice",
        fragment: itemOf("two"),
        followUp: { ...known, location: uriOf(first) }
      })
    )
    const [second] = await relays.stored("bob")
    expect(repeated).toEqual({ _tag: "Delivered", code: 202, location: uriOf(second) })
    await follow(relays, itemOf("three"))
    expect(await relays.stored("bob")).toMatchObject([{ n: 3 }])
  })

  it("replaces an edition between, whose reply was lost", async () => {
    const relays = await startRelays(delivered)
    const first = await sentToBob(relays)
    const { documents } = noDependencies
    const arrive = (edition: number, isWithdrawal: boolean, fragment: string) =>
      Effect.runPromise(
        deliverLocally(relays.peers, { links, keyring: testKeyring, documents }, {
          from: here,
          to: links.mailbox("bob"),
          account: "alice",
          fragment,
          followUp: {
            edition,
            item: edition + 1,
            isWithdrawal,
            isKnown: true,
            location: uriOf(first),
            earlierItem: 1
          }
        })
      )
    await arrive(1, false, itemOf("two"))
    const [second] = await relays.stored("bob")
    await arrive(2, true, withdrawalFragment(0))
    const uri = uriOf(second)
    expect(await relays.stored("bob")).toMatchObject([
      { n: 3, fragment: expect.stringContaining(`<replaces>${uri}</replaces><withdrawn>`) }
    ])
    // A late repetition of the one between stores nothing.
    await arrive(1, false, itemOf("two"))
    expect(await relays.stored("bob")).toMatchObject([{ n: 3 }])
  })

  it("finds the first one, whose reply was lost, by the digest", async () => {
    const relays = await startRelays(delivered)
    const first = await sentToBob(relays)
    const { documents } = noDependencies
    await Effect.runPromise(
      deliverLocally(relays.peers, { links, keyring: testKeyring, documents }, {
        from: here,
        to: links.mailbox("bob"),
        account: "alice",
        fragment: itemOf("two"),
        followUp: { edition: 1, item: 2, isWithdrawal: false, isKnown: true, earlierItem: 1 }
      })
    )
    expect(await relays.stored("bob")).toMatchObject([
      { n: 2, fragment: expect.stringContaining(`<replaces>${uriOf(first)}</replaces>`) }
    ])
  })

  it("replaces only what this one has brought, whatever another service says", async () => {
    const relays = await startRelays(({ uri }, count) =>
      count === 1
        ? { _tag: "Delivered", code: 202, location: forged }
        : uri === elsewhere
        ? { _tag: "Found", uri: links.mailbox("bob") }
        : delivered()
    )
    await relays.open("bob")
    await relays.create([links.mailbox("bob")], documentOf(itemOf("other")), "n2")
    await relays.ended("n2")
    const [other] = await relays.stored("bob")
    const forged = uriOf(other)
    await relays.create([elsewhere], documentOf(itemOf("one")))
    await relays.ended()
    await follow(relays, itemOf("two"))
    expect(await relays.stored("bob")).toMatchObject([
      { n: 1, fragment: itemOf("other") },
      { n: 2, fragment: itemOf("two") }
    ])
  })

  it("names the first one by its Location elsewhere, with a key of its own", async () => {
    const relays = await startRelays((_, count) => ({
      _tag: "Delivered",
      code: 202,
      location: `${elsewhere}/${count}`
    }))
    await relays.create([elsewhere], documentOf(itemOf("one")))
    await relays.ended()
    await follow(relays, itemOf("two"))
    await follow(relays)
    const [first, second, third] = relays.posts.map(({ body }) => String(body))
    expect(first).toBe(documentOf(itemOf("one")))
    const replaces = `<replaces>${elsewhere}/1</replaces>`
    expect(second).toBe(documentOf(itemOf("two").replace("</url>", `</url>${replaces}`)))
    const named = `<url>${elsewhere}/2</url><replaces>${elsewhere}/2</replaces><withdrawn>`
    expect(third).toContain(named)
    const keys = relays.posts.map(({ headers }) => headers["Idempotency-Key"])
    expect(new Set(keys).size).toBe(3)
  })

  it("names it by the URI of its message where there is no Location", async () => {
    const relays = await startRelays(() => ({ _tag: "Delivered", code: 200 }))
    await relays.create([elsewhere], documentOf(itemOf("one")))
    await relays.ended()
    await follow(relays, itemOf("two"))
    await follow(relays)
    const [, second, third] = relays.posts.map(({ body }) => String(body))
    expect(second).toContain("<replaces>http://a.test/one</replaces>")
    expect(third).toContain("<url>http://a.test/two</url><replaces>http://a.test/two</replaces>")
  })

  it("is all that a recipient gets that has not got the first one", async () => {
    const relays = await startRelays(delivered, [3_600_000])
    await relays.create([elsewhere], documentOf(itemOf("one")))
    const view = await follow(relays)
    expect(view.recipients).toMatchObject([{ status: "success", attempts: 0 }])
    expect(relays.posts).toEqual([])
  })
})
