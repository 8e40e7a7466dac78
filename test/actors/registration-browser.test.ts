/** The form `webpush` of a registration: its decisions, and one push. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { browserReplaysPerMinuteMax, failingMaxMs } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { encodeItem, encodeRemoval } from "../../actors/mailbox/log-item.ts"
import type { OutboundContent, OutboundPost } from "../../actors/outbound/protocol.ts"
import { PushResources } from "../../actors/registration/mailbox-reader.ts"
import type { RegistrationMessage } from "../../actors/registration/protocol.ts"
import { push } from "../../actors/registration/push.ts"
import { testEventsFormat } from "../../actors/registration/test-event.ts"
import { Vapid } from "../../actors/registration/web-push.ts"
import { notificationDocuments } from "../../http/documents.ts"
import { address, type LogItem, type Peers, type Variant } from "../../runtime/index.ts"
import { expectOnlyReply, expectRefused, nowMs } from "./cells.ts"
import { contentOf } from "./contents.ts"
import { testApplicationServerKey, testKeyring, testVapid } from "./dependencies.ts"
import { absent, active, create, decide, delivered, expectBegun, expectEnd, expectNothing, faulted,
  found, leaseEndMs, look, push as nativePush, pushed, pushing as nativePushing, type Registered,
  rotate, tested, testIt, timerFired, update } from "./registration-cells.ts"
import { decryptPush, newBrowser, verifyVapid } from "./web-push.ts"

const subscribe: Variant<RegistrationMessage, "Create"> = {
  ...create,
  form: "webpush",
  p256dh: "key",
  secret: "auth"
}
const ofBrowser = { form: "webpush", p256dh: "key", secrets: [{ value: "auth" }] } as const
const idle: Registered = { ...active, ...ofBrowser }
const pushing: Registered = { ...nativePushing, ...ofBrowser }
/** The result of a push that was encrypted for the browser's key. */
const pushedFor = (outcome: Parameters<typeof pushed>[0], p256dh = "key") => ({
  ...pushed(outcome),
  p256dh
})
const failure = (code: number) =>
  ({ _tag: "PermanentFailure", code, problem: `status ${code}` }) as const
const permanent = (code: number) => pushedFor(failure(code))

describe("the subscription of a browser", () => {
  it("is active at once, and checks for what came before the mailbox lists it", () => {
    const decision = decide(absent, subscribe)
    expect(decision.nextState).toEqual({
      ...idle,
      running: { kind: "check", untilMs: leaseEndMs }
    })
    expectBegun(decision, look)
    expect(decision.answer).toMatchObject({
      _tag: "Created",
      view: { form: "webpush", status: "active" }
    })
    const { p256dh: _, ...withoutKey } = subscribe
    const { secret: __, ...withoutSecret } = subscribe
    for (const bare of [withoutKey, withoutSecret]) expectRefused(decide(absent, bare), "Invalid")
  })

  it("has new keys when the browser subscribes again, which ends a suspension", () => {
    const again = { ...subscribe, requestId: "r2", p256dh: "key 2", secret: "auth 2", cursor: 9 }
    const renewed = decide({ ...pushing, status: "suspended", tries: 9, failingSinceMs: 1 }, again)
    expect(renewed.nextState).toMatchObject({
      requestId: "r2",
      status: "active",
      version: 2,
      p256dh: "key 2",
      secrets: [{ value: "auth 2" }],
      cursor: 3,
      tries: 0
    })
    expect(renewed.nextState).not.toHaveProperty("failingSinceMs")
    expect(decide(idle, subscribe).answer).toMatchObject({ repeated: true })
    expectRefused(decide(idle, { ...again, callback: "http://other.org/" }), "Taken")
    expectRefused(decide(active, again), "Taken")
    const theirs = { ...idle, secretsVersion: 1 }
    expect(decide(theirs, { ...again, secretsVersion: 2 }).nextState)
      .toMatchObject({ secretsVersion: 2 })
    expect(decide(theirs, again).nextState).not.toHaveProperty("secretsVersion")
    // One of the owner remains one.
    expect(decide(idle, { ...again, secretsVersion: 2 }).nextState)
      .not.toHaveProperty("secretsVersion")
  })

  it("pushes again with its new keys, and ignores the result of a push with the old ones", () => {
    const running = { ...pushing, running: { kind: "push", untilMs: leaseEndMs } } as const
    const again = { ...subscribe, requestId: "r2", p256dh: "key 2", secret: "auth 2" }
    const begun = { ...nativePush, form: "webpush", p256dh: "key 2", secrets: ["auth 2"] }
    const renewed = decide(running, again)
    expectBegun(renewed, begun)
    const state = renewed.nextState ?? absent
    for (const outcome of [delivered, failure(403)]) {
      expectNothing(decide(state, pushedFor(outcome)))
    }
    expect(decide(state, pushedFor(delivered, "key 2")).nextState).toMatchObject({ cursor: 8 })
    // The same keys again change nothing of it.
    expect(decide(running, { ...again, p256dh: "key", secret: "auth" }).nextState)
      .toMatchObject({ running: running.running })
  })

  it("pushes with both keys, and a last time when the mailbox is gone", () => {
    const begun = { ...nativePush, form: "webpush", p256dh: "key", secrets: ["auth"] }
    expectBegun(decide({ ...idle, pushing: 8 }, timerFired), begun)
    const looking: Registered = { ...idle, running: { kind: "check", untilMs: leaseEndMs } }
    expectBegun(decide(looking, found(3, false, true)), { ...begun, upTo: 3, mailboxGone: true })
  })

  it("ends when the push service answers 404 or 410", () => {
    for (const code of [404, 410]) expectEnd(decide(pushing, permanent(code)))
    expect(decide(nativePushing, pushed(failure(404))).nextState)
      .toMatchObject({ status: "active" })
  })

  it("is suspended when the push service rejects the push, and lifted by its owner", () => {
    // A redirect, which is not followed, is none of a push service.
    for (const code of [301, 302, 307, 308, 400, 401, 403, 413]) {
      const rejected = decide(pushing, permanent(code))
      expect(rejected.nextState).toMatchObject({ status: "suspended", code, pushing: 8, cursor: 3 })
      expect(rejected.timerAtMs).toBeNull()
    }
    const suspended: Registered = { ...pushing, status: "suspended" }
    expect(decide(suspended, update).nextState).toMatchObject({ status: "active", pushing: 8 })
    // Without its keys, which a restore may lack, nothing could be encrypted.
    expectRefused(decide({ ...suspended, secrets: [] }, update), "Invalid")
    expectRefused(decide(idle, { ...update, callback: "http://other.org/" }), "Invalid")
    expectRefused(decide(idle, rotate), "Invalid")
  })

  describe("that has a test event", () => {
    const test = { id: "t1", startsMs: [nowMs] }
    const testing: Registered = { ...idle, test }
    const testedBy = (code: number) => ({ ...tested, outcome: failure(code) })

    it("ends by 404 and 410, which another callback is only shown", () => {
      for (const code of [404, 410]) {
        expectEnd(decide(testing, testedBy(code)))
        expect(decide({ ...active, test }, testedBy(code)).nextState)
          .toMatchObject({ status: "active", test: { outcome: { code } } })
      }
    })

    it("has no other one once the push service rejects it, until a request lifts that", () => {
      for (const code of [302, 400, 401, 403, 413]) {
        const decision = decide(testing, testedBy(code))
        const { nextState: rejected = absent } = decision
        expect(rejected).toMatchObject({
          status: "suspended",
          code,
          cursor: 3,
          tries: 0,
          test: { id: "t1", outcome: { code } }
        })
        expect([decision.actions, decision.timerAtMs]).toEqual([undefined, null])
        expectRefused(decide(rejected, { ...testIt, id: "t2" }), "OutOfOrder")
        const again = { ...subscribe, requestId: "r2", p256dh: "key 2", secret: "auth 2" }
        for (const request of [update, again]) {
          const lifted = decide(rejected, request).nextState ?? absent
          expect(decide(lifted, { ...testIt, id: "t2" }).actions)
            .toEqual([expect.objectContaining({ _tag: "SendTest", id: "t2" })])
        }
      }
      // What a push has found out counts as well.
      const { nextState: suspended = absent } = decide(pushing, permanent(403))
      expectRefused(decide(suspended, testIt), "OutOfOrder")
      expect(decide(suspended, update).nextState).not.toHaveProperty("endpointRejects")
    })

    it("is not pushed to after that, also if a push waits, runs or is paused", () => {
      const held = decide({ ...idle, test, pushing: 8, nextAtMs: nowMs }, testedBy(403))
      expect([held.actions, held.nextState]).toEqual([
        undefined,
        expect.objectContaining({ status: "suspended", pushing: 8 })
      ])
      const running = { kind: "push", untilMs: leaseEndMs } as const
      const stopped = decide({ ...pushing, test, running }, testedBy(403))
      expect(stopped.nextState).toMatchObject({ status: "suspended", pushing: 8, cursor: 3 })
      const { nextState: suspended = absent } = stopped
      expectNothing(decide(suspended, pushedFor(faulted)))
      // Nor does it wait for that push once a request lifts the suspension.
      expect(decide(suspended, update).actions)
        .toEqual([expect.objectContaining({ _tag: "Push", upTo: 8 })])
      const paused = decide({ ...pushing, test, running, status: "paused" }, testedBy(403))
      expect(paused.nextState).toMatchObject({ status: "paused", code: 403 })
      expectRefused(decide(paused.nextState ?? absent, { ...testIt, id: "t2" }), "OutOfOrder")
      // The push has arrived after all.
      const arrived = decide(paused.nextState ?? absent, pushedFor(delivered)).nextState ?? absent
      expect(arrived).toMatchObject({ status: "paused", cursor: 8 })
      expect(decide(arrived, { ...testIt, id: "t2" }).actions).toHaveLength(1)
    })

    it("is changed by no other failure", () => {
      for (const outcome of [faulted, { ...faulted, code: 503 }]) {
        expect(decide(testing, { ...tested, outcome }).nextState)
          .toEqual({ ...testing, test: { ...test, outcome, durationMs: 12 } })
      }
      // The last push decides.
      expect(decide({ ...testing, mailboxGone: true }, testedBy(403)).nextState)
        .toMatchObject({ status: "active" })
    })

    it("has none with its new keys, but their rate", () => {
      const again = { ...subscribe, requestId: "r2", p256dh: "key 2", secret: "auth 2" }
      const { nextState: renewed = absent } = decide(testing, again)
      expect(renewed).toMatchObject({ test: { startsMs: [nowMs] } })
      expectNothing(decide(renewed, testedBy(410)))
      const same = decide(testing, { ...again, p256dh: "key", secret: "auth" }).nextState
      expect(same).toMatchObject({ test })
    })
  })

  it("goes back to earlier changes a bounded number of times in a minute", () => {
    const back = { ...update, cursor: 1 }
    let state: Registered = idle
    for (let n = 0; n < browserReplaysPerMinuteMax; n += 1) {
      const { nextState } = decide(state, { ...back, challenge: `c${n}` })
      expect(nextState).toMatchObject({ cursor: 1 })
      if (nextState?._tag === "Registered") state = nextState
    }
    const untilMs = nowMs + 60_000
    expectOnlyReply(decide(state, back, { format: testEventsFormat }), {
      _tag: "TooManyReplays",
      untilMs
    })
    // A node of an earlier version knows no such reply.
    expectRefused(decide(state, back), "Busy")
    // Without another position it goes on, and a verified callback always.
    expect(decide(state, update).nextState).toMatchObject({ status: "active" })
    const native = { ...state, form: "native" } as const
    expect(decide(native, back).nextState).toMatchObject({ cursor: 1 })
    const later = decide(state, back, { nowMs: untilMs })
    expect(later.nextState).toMatchObject({ cursor: 1, replaysMs: [untilMs] })
  })

  it("retries other failures, for seven days", () => {
    const forbidden = pushedFor({ _tag: "PermanentFailure", problem: "the address is not allowed" })
    for (const message of [pushedFor(faulted), forbidden]) {
      expect(decide(pushing, message).nextState).toMatchObject({ status: "active", tries: 1 })
      const late = { ...pushing, failingSinceMs: nowMs - failingMaxMs }
      expect(decide(late, message).nextState).toMatchObject({ status: "suspended" })
    }
  })
})

describe("a push to a browser", () => {
  const endpoint = "https://push.example.net/p/1"
  const self = address("registration", "alice=r")
  const itemOf = (n: number, text: string): LogItem => ({
    n,
    value: encodeItem(
      nowMs + n,
      "r".repeat(22),
      "d".repeat(22),
      `<item><description>${text}</description></item>`
    )
  })
  const removal: LogItem = { n: 3, value: encodeRemoval(nowMs + 3, ["1-x"]) }

  /** What one push of these items sends, and returns. */
  const pushOf = async (items: ReadonlyArray<LogItem>, vapid = testVapid) => {
    const browser = await newBrowser()
    const posts: Array<{ readonly post: OutboundPost; readonly content: OutboundContent }> = []
    const post = (posting: OutboundPost) =>
      Effect.map(contentOf(posting), (content) => {
        if (content !== undefined) posts.push({ post: posting, content })
        return { _tag: "Delivered", code: 201 } as const
      })
    const peers: Peers = {
      ask: () => Effect.succeed({ _tag: "Head", head: 3, lastAtMs: nowMs }),
      read: (_of, first) => Effect.succeed(items.filter(({ n }) => n >= first))
    }
    const message = await Effect.runPromise(push(
      {
        outbound: { post, get: () => Effect.never, head: () => Effect.never },
        links: linksUnder("http://own.test"),
        keyring: testKeyring,
        documents: notificationDocuments,
        vapid,
        random: () => 0.5
      },
      new PushResources(testKeyring),
      peers,
      self,
      {
        _tag: "Push",
        form: "webpush",
        callback: endpoint,
        p256dh: browser.p256dh,
        secrets: [browser.auth],
        from: 0,
        upTo: 3,
        mailboxGone: false,
        untilMs: 9
      }
    ))
    return { browser, message, posts }
  }

  it("has the newest notification of several, and goes nowhere else", async () => {
    const { browser, message, posts } = await pushOf([itemOf(1, "one"), itemOf(2, "two"), removal])
    expect(message).toMatchObject({ _tag: "Pushed", upTo: 3 })
    expect(posts).toHaveLength(1)
    const [{ content, post } = { content: undefined, post: undefined }] = posts
    expect(post).toMatchObject({ uri: endpoint, refusesRedirects: true })
    await verifyVapid(
      content?.authorization,
      testApplicationServerKey,
      "https://push.example.net",
      Date.now()
    )
    const text = await decryptPush(browser, Buffer.from(content?.body ?? ""))
    expect(JSON.parse(text)).toMatchObject({ count: "2", notification: { description: "two" } })
  })

  it("is not made of removals alone: the browser would have nothing to show", async () => {
    for (const items of [[removal], []]) {
      const { message, posts } = await pushOf(items)
      expect([message, posts]).toEqual([{ _tag: "Skipped", untilMs: 9, from: 0, upTo: 3 }, []])
    }
  })

  it("waits until the node has the service's key", async () => {
    const { message, posts } = await pushOf([itemOf(1, "one")], new Vapid([]))
    expect([message, posts]).toEqual([{ _tag: "Unavailable", untilMs: 9 }, []])
  })
})
