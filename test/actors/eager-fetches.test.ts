/** The eager fetches of a node at the same time: one attempt of each task, and their memory. */
import { Effect, Fiber, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { expect, it, onTestFinished } from "vitest"
import { backgroundTask } from "../../actors/background-task/actor.ts"
import { fetchContent, passwordChecks } from "../../actors/background-task/fetch-and-receipt.ts"
import { FetchBudget, type FetchHolder,
  FetchReservation } from "../../actors/background-task/fetch-budget.ts"
import { backgroundTaskAttemptMaxMs, backgroundTaskLeaseMs, bodyBlockBytes, cachedBytesMax,
  fetchBytesInFlightMax, fetchBytesPerMailboxMax, fetchBytesPerSenderMax,
  fetchMemoryRetryMs } from "../../actors/limits.ts"
import { encodeItem } from "../../actors/mailbox/log-item.ts"
import type { FetchOutcome, OutboundGet } from "../../actors/outbound/protocol.ts"
import { address, type Peers } from "../../runtime/index.ts"
import { hash, nowMs as beganAtMs } from "./cells.ts"
import { noDependencies, noPeers } from "./dependencies.ts"
import { defaultSettings } from "./mailbox-settings.ts"

const gone: FetchOutcome = { _tag: "PermanentFailure", code: 404, problem: "not found" }

const ended = { _tag: "Attempted", outcome: gone }

/** Whoever deposited a notification; nobody knows that of a signed webhook. */
interface Depositor {
  readonly account?: string
  readonly network?: string
}

/** The tasks of a node; `get` is how the other services answer, by the name of the mailbox. */
const nodeOf = async (
  get: (mailbox: string, get: OutboundGet) => Effect.Effect<FetchOutcome>,
  depositorOf: (mailbox: string, n: number) => Depositor = (id) => ({ account: `sender-of-${id}` })
) => {
  const runtime = ManagedRuntime.make(TestClock.layer())
  onTestFinished(() => runtime.dispose())
  await runtime.runPromise(TestClock.setTime(beganAtMs))
  const settings = { ...defaultSettings, fetch: "eager", fetchLimitBytes: cachedBytesMax }
  const gets: Array<string> = []
  const peers: Peers = {
    ...noPeers,
    ask: () => Effect.succeed({ _tag: "Described", view: { owner: "alice", settings } }),
    read: ({ id }, n) => {
      const fragment = `<item><url>https://${id}.example/${n}</url></item>`
      const parts = [hash("random").slice(0, 22), hash("digest").slice(0, 22)] as const
      const value = encodeItem(beganAtMs, ...parts, fragment, depositorOf(id, n))
      return Effect.succeed([{ n, value }])
    }
  }
  const outbound = {
    ...noDependencies.outbound,
    get: (one: OutboundGet) =>
      Effect.suspend(() => {
        gets.push(one.uri)
        return get(new URL(one.uri).hostname.replace(".example", ""), one)
      })
  }
  const behavior = backgroundTask({ ...noDependencies, outbound })
  /** Begins an attempt to fetch for notification `n`. */
  const begin = (mailbox: string, n: number) => {
    const self = address("background-task", `${mailbox}=${n.toString(36)}-fetch`)
    const action = { _tag: "Attempt", problem: undefined } as const
    return runtime.runFork(behavior.perform(action, self, peers))
  }
  /** The result of such an attempt. */
  const attempt = (mailbox: string, n: number) => runtime.runPromise(Fiber.join(begin(mailbox, n)))
  const pass = (ms: number) => runtime.runPromise(TestClock.adjust(ms))
  return { attempt, begin, gets, pass }
}

it("fetches elsewhere while fetches into a mailbox of the largest limit hang", async () => {
  const { attempt, begin, gets, pass } = await nodeOf((mailbox) =>
    mailbox === "evil" ? Effect.never : Effect.succeed(gone)
  )
  for (let n = 1; n <= 128; n++) begin("evil", n)
  await pass(1)
  expect(gets).toHaveLength(128)
  expect(await attempt("good", 1)).toMatchObject(ended)
})

it("has one attempt of a task, however often its timer fires", async () => {
  const { begin, gets, pass } = await nodeOf(() => Effect.never)
  for (let round = 0; round < 3; round++) {
    begin("evil", 1)
    await pass(backgroundTaskLeaseMs)
  }
  expect(gets).toHaveLength(1)
})

it("begins a new attempt of a task whose attempt never ends", async () => {
  const { begin, gets, pass } = await nodeOf(() => Effect.never)
  const attempt = begin("evil", 1)
  await pass(backgroundTaskAttemptMaxMs)
  expect(await Effect.runPromise(Fiber.join(attempt))).toMatchObject({
    _tag: "Attempted",
    outcome: { _tag: "Deferred" }
  })
  begin("evil", 1)
  await pass(0)
  expect(gets).toHaveLength(2)
})

it("defers fetches while all memory is held, with one attempt of a task at a time", async () => {
  const releases: Array<() => void> = []
  const holding = fetchBytesInFlightMax / fetchBytesPerSenderMax
  const { attempt, begin, gets, pass } = await nodeOf((mailbox, { memory }) => {
    if (!mailbox.startsWith("evil")) return Effect.succeed(gone)
    expect(memory?.reserve(fetchBytesPerSenderMax)).toBe(true)
    return Effect.callback((resume) => void releases.push(() => resume(Effect.succeed(gone))))
  })
  for (let n = 1; n <= holding; n++) begin(`evil${n}`, 1)
  await pass(0)
  for (let ms = 0; ms <= 5 * 60_000; ms += fetchMemoryRetryMs) {
    expect(await attempt("good", 1)).toMatchObject({
      _tag: "Attempted",
      outcome: { _tag: "Deferred", untilMs: beganAtMs + ms + fetchMemoryRetryMs }
    })
    await pass(fetchMemoryRetryMs)
  }
  expect(gets).toHaveLength(holding)
  releases[0]?.()
  await pass(0)
  expect(await attempt("good", 1)).toMatchObject(ended)
})

it("keeps room for other senders and mailboxes from one that holds its part", async () => {
  const { attempt, begin, gets, pass } = await nodeOf((mailbox, { memory }) => {
    if (mailbox !== "evil") return Effect.succeed(gone)
    expect(memory?.reserve(cachedBytesMax)).toBe(true)
    return Effect.never
  })
  const holding = fetchBytesPerSenderMax / cachedBytesMax
  for (let n = 1; n <= holding; n++) begin("evil", n)
  await pass(0)
  const deferred = { outcome: { _tag: "Deferred" } }
  expect(await attempt("evil", 100)).toMatchObject(deferred)
  expect(gets).toHaveLength(holding)
  expect(await attempt("good", 1)).toMatchObject(ended)
})

it.each<Depositor>([{ account: "evil" }, { network: "198.51.100.0/24" }, {}])(
  "keeps room for other senders to a mailbox from %o, whose content is slow",
  async (evil) => {
    // Fewer than the requests of a network to one origin.
    const slow = 4
    const { attempt, begin, gets, pass } = await nodeOf(
      (_, { memory, uri }) => {
        if (uri.endsWith("/1000")) return Effect.succeed(gone)
        expect(memory?.reserve(fetchBytesPerSenderMax / slow)).toBe(true)
        return Effect.never
      },
      (_, n) => n === 1_000 ? { account: "good" } : evil
    )
    for (let n = 1; n <= slow; n++) begin("shared", n)
    await pass(0)
    expect(await attempt("shared", 999)).toMatchObject({ outcome: { _tag: "Deferred" } })
    expect(gets).toHaveLength(slow)
    expect(await attempt("shared", 1_000)).toMatchObject(ended)
  }
)

it("leaves room for other mailboxes, however many senders a mailbox has", async () => {
  const { attempt, begin, gets, pass } = await nodeOf((mailbox, { memory }) => {
    if (mailbox !== "evil") return Effect.succeed(gone)
    expect(memory?.reserve(fetchBytesPerSenderMax)).toBe(true)
    return Effect.never
  }, (mailbox, n) => ({ account: `${mailbox}-${n}` }))
  const holding = fetchBytesPerMailboxMax / fetchBytesPerSenderMax
  for (let n = 1; n <= holding; n++) begin("evil", n)
  await pass(0)
  expect(await attempt("evil", 100)).toMatchObject({ outcome: { _tag: "Deferred" } })
  expect(gets).toHaveLength(holding)
  expect(await attempt("good", 1)).toMatchObject(ended)
})

it("counts the memory of each holder, and gives all of it back", () => {
  const budget = new FetchBudget()
  const mailbox = (name: string) => ({ name, bytesMax: fetchBytesPerMailboxMax })
  const bob = { name: "account bob", bytesMax: fetchBytesPerSenderMax }
  const of = (...holders: ReadonlyArray<FetchHolder>) => new FetchReservation(budget, holders)
  const first = of(mailbox("a"), bob)
  expect(first.reserve(fetchBytesPerSenderMax)).toBe(true)
  expect([first.hasRoom, first.reserve(1)]).toEqual([false, false])
  expect([of(mailbox("a")).hasRoom, of(mailbox("b"), bob).hasRoom]).toEqual([true, false])
  first.release(bodyBlockBytes)
  expect(of(mailbox("b"), bob).reserve(bodyBlockBytes)).toBe(true)
  const rest = fetchBytesPerMailboxMax - fetchBytesPerSenderMax + bodyBlockBytes
  expect(of(mailbox("a")).reserve(rest + 1)).toBe(false)
  const second = of(mailbox("a"))
  expect(second.reserve(rest)).toBe(true)
  expect(of(mailbox("a")).hasRoom).toBe(false)
  const left = fetchBytesInFlightMax - fetchBytesPerMailboxMax - bodyBlockBytes
  expect(of(mailbox("c")).reserve(left)).toBe(true)
  expect(of(mailbox("f")).hasRoom).toBe(false)
  first.end()
  first.end()
  second.end()
  expect(of(mailbox("a")).reserve(fetchBytesPerMailboxMax)).toBe(true)
  expect(of(mailbox("f")).hasRoom).toBe(false)
})

it("reads no content of this service for which there is no room", async () => {
  const body = { blobId: "b0", lengthBytes: 100, type: "text/plain" }
  const peers: Peers = {
    ...noPeers,
    ask: () => Effect.succeed({ _tag: "Described", view: { body } })
  }
  const asked: Array<number> = []
  const resourcesOf = (hasRoom: boolean) => ({
    memory: {
      reserve: (bytes: number) => asked.push(bytes) > 0 && hasRoom,
      release: () => undefined
    },
    passwords: passwordChecks()
  })
  const input = {
    pointer: { url: "http://post.test/content/c1", password: undefined },
    mailbox: "http://post.test/mailboxes/alice",
    settings: { ...defaultSettings, fetch: "eager" as const },
    key: "k",
    bounds: { cause: { kind: "account" as const, id: "alice" } },
    guesser: "account alice"
  }
  const fetchWith = (hasRoom: boolean) =>
    Effect.runPromise(fetchContent(noDependencies, peers, resourcesOf(hasRoom), input))
  expect(await fetchWith(false)).toMatchObject({ _tag: "Deferred" })
  // There is no blob either: it was opened.
  expect(await fetchWith(true)).toMatchObject({ _tag: "RetryableFailure" })
  expect(asked).toEqual([100, 100])
})
