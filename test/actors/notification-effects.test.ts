/** Effects of an outgoing notification, where peers and stores are away. */
import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import { documentCharsInFlightMax, documentReadMs, statusHintsPerWriteMax,
  statusHintsWaitingMax } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { MemoryBudget, RelayResources } from "../../actors/notification/relay-resources.ts"
import type { NotificationMessage } from "../../actors/notification/protocol.ts"
import { type AttemptAction, makeAttempt } from "../../actors/notification/relay.ts"
import { StatusHints } from "../../actors/notification/status-hints.ts"
import type { ExchangeRecord, Outbound } from "../../actors/outbound/protocol.ts"
import { address, type Peers, type RecordChange, StorageUnavailable,
  ValueTooLarge } from "../../runtime/index.ts"
import { noDependencies } from "./dependencies.ts"
import { contentOf } from "./contents.ts"

const links = linksUnder("https://post.test")
const self = address("notification", "n1")
const document = "<notification><item/></notification>"
const elsewhere = "https://example.org/inbox"

const attempt = (to: string, atHand = true): AttemptAction => ({
  _tag: "Attempt",
  recipient: 0,
  attempt: 1,
  to,
  traceId: "1".repeat(32),
  account: "alice",
  document: atHand ? document : undefined,
  chars: document.length
})

const away = Effect.fail(new StorageUnavailable({ detail: "away" }))
const stored: Peers["read"] = () => Effect.succeed([{ n: 1, value: document }])

/** Asks for the content, and sends when there is one. */
const outbound: Outbound = {
  post: (posting) =>
    Effect.map(contentOf(posting), (content) =>
      content !== undefined
        ? { _tag: "Delivered", code: 202 }
        : { _tag: "PermanentFailure", problem: "no longer wanted" }),
  get: () => Effect.succeed({ _tag: "RetryableFailure", problem: "never asked" }),
  head: () => Effect.never
}

const deps = { documents: noDependencies.documents, keyring: noDependencies.keyring }

const runAt = (
  resources: RelayResources,
  action: AttemptAction,
  peers: Peers
): Promise<NotificationMessage | void> =>
  Effect.runPromise(
    makeAttempt({ ...deps, outbound, links, random: () => 0.5 }, resources, self, peers, action)
  )

const run = (
  action: AttemptAction,
  peers: Peers,
  memory = new MemoryBudget()
): Promise<NotificationMessage | void> => runAt(new RelayResources(memory), action, peers)

/** The trace that each ask of a peer belongs to. */
const traced = (seen: Array<string>): Peers => ({
  read: stored,
  ask: () =>
    Effect.map(Effect.currentParentSpan, ({ sampled, spanId, traceId }) => {
      seen.push(`${traceId}-${spanId}-${sampled}`)
      return { _tag: "Deposited", n: 1 }
    }).pipe(Effect.orDie)
})

it("a relay inside belongs to the request's trace, each attempt by its own span", async () => {
  const seen: Array<string> = []
  for (const _ of [1, 2]) {
    expect(await run(attempt("https://post.test/mailboxes/bob"), traced(seen)))
      .toMatchObject({ outcome: { _tag: "Delivered" } })
  }
  expect(new Set(seen).size).toBe(2)
  for (const one of seen) expect(one).toMatch(/^1{32}-(?!0{16})[0-9a-f]{16}-true$/)
})

const attempted = (outcome: string) => ({
  _tag: "Attempted",
  recipient: 0,
  attempt: 1,
  outcome: { _tag: outcome },
  random: 0.5
})

describe("an attempt", () => {
  it.each([elsewhere, links.mailbox("bob")])("at %s is put off", async (to) => {
    const unread: Peers = { ask: () => away, read: () => away }
    expect(await run(attempt(to, false), unread)).toMatchObject(attempted("Deferred"))
    const full = new MemoryBudget()
    expect(full.reserve(documentCharsInFlightMax)).toBe(true)
    const peers: Peers = { ask: () => away, read: stored }
    expect(await run(attempt(to, false), peers, full)).toMatchObject(attempted("Deferred"))
  })

  it.each([elsewhere, links.mailbox("bob")])("at %s tells nothing if unwanted", async (to) => {
    const gone: Peers = { ask: () => away, read: () => Effect.succeed([]) }
    expect(await run(attempt(to, false), gone)).toBeUndefined()
    for (const atHand of [true, false]) {
      const resources = new RelayResources()
      const removed: Peers = {
        ask: () => away,
        read: () => {
          resources.running.markRemoved(self.id)
          return Effect.succeed([{ n: 1, value: document }])
        }
      }
      // Another attempt of the same notification is running: the removal reaches both.
      resources.running.begin(self.id, "1.1")
      if (atHand) resources.running.markRemoved(self.id)
      expect(await runAt(resources, attempt(to, atHand), removed)).toBeUndefined()
    }
  })

  it("faults while the mailbox is away", async () => {
    const peers: Peers = { ask: () => away, read: stored }
    expect(await run(attempt(links.mailbox("bob")), peers)).toMatchObject({
      outcome: { _tag: "RetryableFailure", code: 503 }
    })
  })

  it("fails for good where the mailbox can never store it", async () => {
    const tooLarge = Effect.fail(new ValueTooLarge({ detail: "planned" }))
    const peers: Peers = { ask: () => tooLarge, read: stored }
    expect(await run(attempt(links.mailbox("bob")), peers)).toMatchObject({
      outcome: { _tag: "PermanentFailure", code: 413 }
    })
  })

  it.each([elsewhere, links.mailbox("bob")])("at %s is put off if a read hangs", async (to) => {
    vi.useFakeTimers()
    try {
      const resources = new RelayResources()
      let reads = 0
      const peers: Peers = {
        ask: () => away,
        read: () => reads++ === 0 ? Effect.never : Effect.succeed([])
      }
      const first = runAt(resources, attempt(to, false), peers)
      await vi.advanceTimersByTimeAsync(documentReadMs)
      expect(await first).toMatchObject(attempted("Deferred"))
      // It can begin again, and reads the document again.
      expect(await runAt(resources, attempt(to, false), peers)).toBeUndefined()
    } finally {
      vi.useRealTimers()
    }
  })

  it("keeps what was exchanged of a failure, and only its time if it is made again", async () => {
    const exchange: ExchangeRecord = {
      beganAtMs: 7,
      durationMs: 8,
      requestHeaders: [["content-type", "text/xml+rss"]],
      code: 404,
      answer: { headers: [["x-id", "1"]], bytes: 2, text: "no" }
    }
    const bounds: Array<unknown> = []
    const failing: Outbound = {
      ...outbound,
      post: ({ observer }) =>
        Effect.sync(() => {
          const { record, ...bound } = observer ?? {}
          bounds.push(bound)
          record?.(exchange)
          return { _tag: "PermanentFailure", code: 404, problem: "answered 404" }
        })
    }
    const resources = new RelayResources()
    const peers: Peers = { ask: () => away, read: stored }
    const relays = { ...deps, outbound: failing, links, random: () => 0.5 }
    const make = () =>
      Effect.runPromise(makeAttempt(relays, resources, self, peers, attempt(elsewhere)))
    expect(await make()).toEqual({
      ...attempted("PermanentFailure"),
      outcome: expect.anything(),
      exchange
    })
    expect(bounds).toEqual([{ answersOf: "allowed" }])
    const { answer: _, ...brief } = exchange
    expect(await make()).toMatchObject({ exchange: { ...brief, requestHeaders: [] } })
    expect(bounds).toHaveLength(1)
  })

  it("within the service has no headers, and as a follow-up no duration", async () => {
    const peers: Peers = {
      read: stored,
      ask: () => Effect.succeed({ _tag: "Refused", reason: "Full" })
    }
    const to = links.mailbox("bob")
    const plain = await run(attempt(to), peers)
    const exchange = {
      beganAtMs: expect.any(Number),
      durationMs: expect.any(Number),
      requestHeaders: [],
      code: 507
    }
    expect(plain).toMatchObject({ isLocal: true })
    expect(plain).toHaveProperty("exchange", exchange)
    const followUp = { edition: 1, item: 1, isWithdrawal: false, isKnown: false, earlierItem: 1 }
    const { durationMs: _, ...hidden } = exchange
    expect(await run({ ...attempt(to), followUp }, peers)).toHaveProperty("exchange", hidden)
  })

  it("is not made again while it runs, or when its outcome is known", async () => {
    const resources = new RelayResources()
    const peers: Peers = { ask: () => away, read: stored }
    const answers: Array<() => void> = []
    const slow: Outbound = {
      ...outbound,
      post: () =>
        Effect.callback((resume) => {
          answers.push(() => resume(Effect.succeed({ _tag: "Delivered", code: 202 })))
        })
    }
    const make = (number: number) =>
      Effect.runPromise(
        makeAttempt({ ...deps, outbound: slow, links, random: () => 0.5 }, resources, self, peers, {
          ...attempt(elsewhere),
          attempt: number
        })
      )
    const first = make(1)
    expect(await make(1)).toMatchObject(attempted("Deferred"))
    answers[0]?.()
    expect(await first).toMatchObject(attempted("Delivered"))
    // Its commit was indeterminate, and the actor begins it again.
    expect(await make(1)).toMatchObject(attempted("Delivered"))
    expect(answers.length).toBe(1)
    void make(2)
    expect(answers.length).toBe(2)
  })

  it("looks up whether its failure is to be reported, and only then", async () => {
    const asked: Array<string> = []
    /** An account with this setting; the mailbox of the recipient is gone, or takes all. */
    const peersOf = (failureReports: string | undefined, isGone: boolean): Peers => ({
      read: stored,
      ask: ({ kind }) => {
        asked.push(kind)
        if (kind === "account") {
          return Effect.succeed({ _tag: "Described", view: { failureReports } })
        }
        return Effect.succeed(
          isGone ? { _tag: "Refused", reason: "Gone" } : { _tag: "Deposited", n: 1 }
        )
      }
    })
    const made = async (peers: Peers, mayReport: boolean) => {
      asked.length = 0
      const message = await run({ ...attempt(links.mailbox("bob")), mayReport }, peers)
      return [message, asked.includes("account")]
    }
    const local = { outcome: expect.anything(), exchange: expect.anything(), isLocal: true }
    const gone = { ...attempted("PermanentFailure"), ...local }
    expect(await made(peersOf("box", true), true)).toEqual([{ ...gone, mayReport: true }, true])
    expect(await made(peersOf(undefined, true), true)).toEqual([gone, true])
    expect(await made(peersOf("box", true), false)).toEqual([gone, false])
    const delivered = { ...attempted("Delivered"), ...local }
    expect(await made(peersOf("box", false), true)).toEqual([delivered, false])
  })

  it("gives back the memory that it took", async () => {
    const memory = new MemoryBudget()
    const peers: Peers = { ask: () => away, read: stored }
    for (let count = 0; count < 3; count++) {
      expect(await run(attempt(elsewhere, false), peers, memory)).toMatchObject(
        attempted("Delivered")
      )
    }
    expect(memory.reserve(documentCharsInFlightMax)).toBe(true)
    expect(memory.reserve(1)).toBe(false)
  })
})

describe("hints of the listing", () => {
  const writer = (fails: (count: number) => boolean) => {
    const writes: Array<ReadonlyArray<RecordChange>> = []
    const hints = new StatusHints({
      write: (changes) =>
        Effect.suspend(() => {
          writes.push(changes)
          return fails(writes.length) ? away : Effect.void
        })
    })
    return { hints, writes }
  }
  const all = (hints: StatusHints, keys: ReadonlyArray<string>): Promise<unknown> =>
    Effect.runPromise(Effect.all(
      keys.map((key) => hints.add(key, "sent")),
      { concurrency: "unbounded" }
    ))
  const keys = (count: number) => Array.from({ length: count }, (_, n) => `alice/${n}`)

  it("are written together, the last one of each", async () => {
    const { hints, writes } = writer(() => false)
    await Effect.runPromise(Effect.all(
      [hints.add("a", "waiting"), hints.add("b", null), hints.add("a", "failed")],
      { concurrency: "unbounded" }
    ))
    expect(writes).toEqual([[
      { table: "outgoing", key: "a", value: "failed" },
      { table: "outgoing", key: "b", value: null, markerExpires: true }
    ]])
  })

  it("are written when a hold asks whether its pause still stands, or are lost", async () => {
    for (const failing of [0, 1]) {
      const { hints, writes } = writer((count) => count === failing)
      const counts: Array<number> = []
      const asked = Effect.map(hints.written(), () => counts.push(writes.length))
      await Effect.runPromise(asked)
      const both = [hints.add("a", "waiting"), asked]
      await Effect.runPromise(Effect.all(both, { concurrency: "unbounded" }))
      expect(counts).toEqual([0, 1])
    }
  })

  it("are written so many at a time, and lost when too many or when the store fails", async () => {
    const { hints, writes } = writer((count) => count === 2)
    await all(hints, keys(statusHintsWaitingMax + 5))
    expect(writes.map(({ length }) => length)).toEqual(
      Array.from(
        { length: statusHintsWaitingMax / statusHintsPerWriteMax },
        () => statusHintsPerWriteMax
      )
    )
    await all(hints, ["later"])
    expect(writes.at(-1)).toEqual([{ table: "outgoing", key: "later", value: "sent" }])
  })
})

/** The attempt sends this edition to a recipient elsewhere that has the first one. */
const followUp = (edition: number): AttemptAction => ({
  ...attempt(elsewhere, false),
  followUp: {
    edition,
    item: 2,
    isWithdrawal: false,
    isKnown: true,
    location: "https://example.org/1",
    earlierItem: 1
  }
})

it("an attempt says which edition it has sent", async () => {
  const second = { n: 2, value: "<notification><item><url></url></item></notification>" }
  const peers: Peers = { read: () => Effect.succeed([second]), ask: () => Effect.die("asked") }
  expect(await run(followUp(1), peers)).toMatchObject({
    _tag: "Attempted",
    edition: 1,
    outcome: { _tag: "Delivered" }
  })
})

it("an attempt that waits when a follow-up is stored sends nothing, and is deferred", async () => {
  /** The follow-up is stored while this log item is read. */
  const outcomeOf = async (action: AttemptAction, n: number) => {
    const resources = new RelayResources()
    const read = Effect.sync(() => {
      resources.running.markRevised(self.id, 1)
      return [{ n, value: document }]
    })
    return runAt(resources, action, { read: () => read, ask: () => Effect.die("asked") })
  }
  for (const to of [elsewhere, "https://post.test/mailboxes/bob"]) {
    expect(await outcomeOf(attempt(to, false), 1))
      .toMatchObject({ attempt: 1, outcome: { _tag: "Deferred" } })
  }
  // The attempt of the follow-up itself is not held up by its own mark.
  expect(await outcomeOf(followUp(1), 2)).toMatchObject({ outcome: { _tag: "Delivered" } })
})
