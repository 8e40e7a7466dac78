/** What the pushes of one node share: nothing old is pushed, nothing withdrawn is sent. */
import { Effect } from "effect"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { batchesCharsMax, batchFreshMs } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { encodeItem } from "../../actors/mailbox/log-item.ts"
import type { Outbound, OutboundPost } from "../../actors/outbound/protocol.ts"
import { PushResources } from "../../actors/registration/mailbox-reader.ts"
import { push } from "../../actors/registration/push.ts"
import { notificationDocuments } from "../../http/documents.ts"
import { address, type Peers } from "../../runtime/index.ts"
import { contentOf } from "./contents.ts"
import { defaultSettings } from "./mailbox-settings.ts"
import { testKeyring, testVapid } from "./dependencies.ts"

const hourMs = 3_600_000
const callback = "http://example.org/hook"
const batch = (chars = 1) => ({ items: [{ n: 1, value: "x".repeat(chars) }], more: false })

describe("batches", () => {
  it("are known for a short time, also while the clock is set back", () => {
    vi.useFakeTimers({ toFake: ["performance", "Date"], now: 10 * hourMs })
    onTestFinished(() => void vi.useRealTimers())
    vi.advanceTimersByTime(1)
    const { batches } = new PushResources(testKeyring)
    const one = batch()
    batches.set("a 0 1", one)
    vi.setSystemTime(9 * hourMs)
    vi.advanceTimersByTime(batchFreshMs)
    expect(batches.get("a 0 1")).toBe(one)
    vi.advanceTimersByTime(1)
    expect(batches.get("a 0 1")).toBeUndefined()
    expect(batches.get("b 0 1")).toBeUndefined()
  })

  it("give way to later ones when there are too many characters", () => {
    const { batches } = new PushResources(testKeyring)
    batches.set("first", batch(batchesCharsMax / 2))
    batches.set("second", batch(batchesCharsMax / 2 + 1))
    expect(batches.get("first")).toBeUndefined()
    expect(batches.get("second")).toBeDefined()
  })

  const content = (chars: number) => ({ headers: {}, body: "x".repeat(chars) })

  it("count the contents that pushes have made of them", () => {
    const { batches } = new PushResources(testKeyring)
    batches.set("first", batch())
    batches.set("second", batch())
    batches.addContent("first", "websub atom", content(batchesCharsMax / 2))
    batches.addContent("second", "websub html", content(batchesCharsMax / 2))
    expect(batches.get("first")).toBeUndefined()
    expect(batches.get("second")?.contents?.get("websub html")).toBeDefined()
    batches.addContent("second", "websub atom", content(1))
    expect(batches.get("second")?.contents?.size).toBe(2)
  })

  it("are not known longer for a content that comes later", () => {
    vi.useFakeTimers({ toFake: ["performance", "Date"], now: 10 * hourMs })
    onTestFinished(() => void vi.useRealTimers())
    vi.advanceTimersByTime(1)
    const { batches } = new PushResources(testKeyring)
    batches.set("a 0 1", batch())
    vi.advanceTimersByTime(batchFreshMs)
    batches.addContent("a 0 1", "native ", content(1))
    expect(batches.get("a 0 1")?.contents?.size).toBe(1)
    vi.advanceTimersByTime(2)
    expect(batches.get("a 0 1")).toBeUndefined()
    batches.addContent("a 0 1", "native ", content(1))
    expect(batches.get("a 0 1")).toBeUndefined()
  })
})

describe("a push that waits for its permit", () => {
  const self = address("registration", "alice=r")
  const away: Peers = { ask: () => Effect.never, read: () => Effect.never }
  const action = {
    _tag: "Push",
    form: "native",
    callback,
    secrets: ["whsec_1"],
    from: 0,
    upTo: 1,
    mailboxGone: true,
    untilMs: 9
  } as const

  /** Whether it is sent after this was done. */
  const sentAfter = async (meanwhile: (resources: PushResources) => void): Promise<boolean> => {
    const resources = new PushResources(testKeyring)
    const sent: Array<unknown> = []
    const post = (posting: OutboundPost) =>
      Effect.suspend(() => {
        meanwhile(resources)
        return Effect.map(contentOf(posting), (content) => {
          if (content !== undefined) sent.push(content)
          return { _tag: "Delivered", code: 200 } as const
        })
      })
    const outbound = { post, get: () => Effect.never, head: () => Effect.never }
    const links = linksUnder("http://own.test")
    const deps = {
      outbound,
      links,
      keyring: testKeyring,
      documents: notificationDocuments,
      vapid: testVapid,
      random: () => 0.5
    }
    await Effect.runPromise(push(deps, resources, away, self, action))
    return sent.length > 0
  }

  it("is sent, unless its registration ends or moves to another callback", async () => {
    expect(await sentAfter(() => undefined)).toBe(true)
    expect(await sentAfter(({ pushes }) => pushes.withdraw(self.id, callback))).toBe(true)
    expect(await sentAfter(({ pushes }) => pushes.withdraw(self.id))).toBe(false)
    expect(await sentAfter(({ pushes }) => pushes.withdraw(self.id, "http://other.test/"))).toBe(
      false
    )
  })

  it("is not sent when a later one has taken its place", async () => {
    expect(await sentAfter(({ pushes }) => pushes.begin(self.id, { callback, untilMs: 10 }))).toBe(
      false
    )
  })
})

/** The push of the first item of a log. */
const firstPush = (form: "native" | "websub", untilMs: number) =>
  ({
    _tag: "Push",
    form,
    callback,
    secrets: [],
    from: 0,
    upTo: 1,
    mailboxGone: false,
    untilMs
  }) as const

it.each([["websub", true], ["native", false]] as const)(
  "a push of the form %s refuses redirects: %s",
  async (form, refuses) => {
    const posts: Array<OutboundPost> = []
    const post = (posting: OutboundPost) => {
      posts.push(posting)
      return Effect.succeed({ _tag: "Delivered", code: 200 } as const)
    }
    const peers: Peers = { ask: () => Effect.never, read: () => Effect.never }
    const deps = {
      outbound: { post, get: () => Effect.never, head: () => Effect.never },
      links: linksUnder("http://own.test"),
      keyring: testKeyring,
      documents: notificationDocuments,
      vapid: testVapid,
      random: () => 0.5
    }
    const action = firstPush(form, 9)
    const self = address("registration", "alice=r")
    await Effect.runPromise(push(deps, new PushResources(testKeyring), peers, self, action))
    expect(posts.map(({ refusesRedirects = false }) => refusesRedirects)).toEqual([refuses])
  }
)

it.each(["native", "websub"] as const)(
  "the content of simultaneous pushes of the form %s is made once",
  async (form) => {
    const value = encodeItem(1, "r".repeat(22), "d".repeat(22), "<item><url>http://a/</url></item>")
    const view = { settings: defaultSettings, lastAtMs: 1, head: 1, createdAtMs: 1 }
    const peers: Peers = {
      ask: () => Effect.as(Effect.yieldNow, { _tag: "Described", view }),
      read: () => Effect.as(Effect.yieldNow, [{ n: 1, value }])
    }
    const bodies: Array<string> = []
    const outbound: Outbound = {
      post: (posting) =>
        Effect.map(contentOf(posting), (content) => {
          if (content !== undefined) bodies.push(String(content.body))
          return { _tag: "Delivered", code: 200 } as const
        }),
      get: () => Effect.never,
      head: () => Effect.never
    }
    const topicDocument = vi.fn(notificationDocuments.topicDocument)
    const links = linksUnder("http://own.test")
    const keyring = testKeyring
    const documents = { ...notificationDocuments, topicDocument }
    const deps = { outbound, links, keyring, documents, vapid: testVapid, random: () => 0.5 }
    const resources = new PushResources(testKeyring)
    const addContent = vi.spyOn(resources.batches, "addContent")
    await Effect.runPromise(
      Effect.forEach(
        [1, 2, 3, 4, 5],
        (untilMs) =>
          push(
            deps,
            resources,
            peers,
            address("registration", `alice=${untilMs}`),
            firstPush(form, untilMs)
          ),
        { concurrency: "unbounded" }
      )
    )
    expect(new Set(bodies).size).toBe(1)
    expect(bodies).toHaveLength(5)
    expect(addContent).toHaveBeenCalledTimes(1)
    expect(topicDocument).toHaveBeenCalledTimes(form === "native" ? 0 : 1)
  }
)
