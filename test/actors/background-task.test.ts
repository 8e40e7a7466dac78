import { Effect } from "effect"
import { Readable } from "node:stream"
import { describe, expect, it } from "vitest"
import { newCopy } from "../../actors/background-task/content-copy.ts"
import { backgroundTaskTable } from "../../actors/background-task/decide.ts"
import { fetchContent, type FetchResources, passwordChecks, sendReceipt,
  type TaskInput } from "../../actors/background-task/fetch-and-receipt.ts"
import { type BackgroundTaskAction, type BackgroundTaskDependencies, type BackgroundTaskMessage,
  type BackgroundTaskReply, type BackgroundTaskState,
  cachedKey } from "../../actors/background-task/protocol.ts"
import { content } from "../../actors/content/actor.ts"
import { type ContentMessage, decodeReceipt } from "../../actors/content/protocol.ts"
import { backgroundTaskLeaseMs, passwordChecksMax, receiptDescriptionCharsMax,
  wrongPasswordsMax } from "../../actors/limits.ts"
import { sha256 } from "../../actors/secret-hash.ts"
import { throttle } from "../../actors/throttle/actor.ts"
import { throttleTable } from "../../actors/throttle/decide.ts"
import type { ThrottleMessage, ThrottleReply,
  ThrottleState } from "../../actors/throttle/protocol.ts"
import { address, type DecisionContext, type Peers } from "../../runtime/index.ts"
import { decider, effectsOf, expectOnlyReply, expectRefused, hash, nowMs,
  testCells } from "./cells.ts"
import { noDependencies, noPeers } from "./dependencies.ts"
import { Model } from "./model.ts"

const schedule = [0, 1_000, 60_000]
const table = backgroundTaskTable(schedule)
const decide = decider<
  BackgroundTaskState,
  BackgroundTaskMessage,
  BackgroundTaskReply,
  BackgroundTaskAction
>(
  table
)

const fetching: Partial<DecisionContext> = { self: address("background-task", "alice=1-fetch") }
const receipting: Partial<DecisionContext> = {
  self: address("background-task", "alice=1-received")
}
const copy = { contentId: "c1" }
const absent: BackgroundTaskState = { _tag: "Absent" }
const retrying: BackgroundTaskState = { _tag: "Retrying", tries: 1, nextAtMs: nowMs }
const storing: BackgroundTaskState = { ...retrying, copy }
const reporting: BackgroundTaskState = {
  _tag: "Reporting",
  problem: "gone",
  tries: 0,
  nextAtMs: nowMs
}
const copied: BackgroundTaskState = { _tag: "Copied", copy, isListed: false, checks: 0 }
const listed: BackgroundTaskState = { _tag: "Copied", copy, isListed: true, checks: 1 }
const removing: BackgroundTaskState = { _tag: "Removing", copy }

const timerFired: BackgroundTaskMessage = { _tag: "TimerFired" }
const obsolete: BackgroundTaskMessage = { _tag: "Obsolete" }
const copyListed: BackgroundTaskMessage = { _tag: "CopyListed" }
const copyNamed: BackgroundTaskMessage = { _tag: "CopyNamed", copy }
const inlined = { contentId: "c1", idRandom: hash("random").slice(0, 22) }
const inlinedFound: BackgroundTaskMessage = { _tag: "InlinedFound", copy: inlined }
const inlining: Partial<DecisionContext> = { self: address("background-task", "alice=1-inlined") }
const copyRemoved: BackgroundTaskMessage = { _tag: "CopyRemoved" }
const checked = (exists: boolean, check = 1): BackgroundTaskMessage => ({
  _tag: "NotificationChecked",
  check,
  exists
})
type Attempted = Extract<BackgroundTaskMessage, { readonly _tag: "Attempted" }>
const attempted = (outcome: Attempted["outcome"]): BackgroundTaskMessage => ({
  _tag: "Attempted",
  outcome,
  random: 0.5
})
const delivered: Attempted["outcome"] = { _tag: "Delivered", code: 200 }
const refused: Attempted["outcome"] = { _tag: "PermanentFailure", code: 404, problem: "not found" }
const faulted: Attempted["outcome"] = { _tag: "RetryableFailure", problem: "no answer in time" }
const deferred: Attempted["outcome"] = { _tag: "Deferred", untilMs: nowMs + 5 }

/** It is tried now: the timer stays stored, and held. */
const expectAttempt = (decision: ReturnType<typeof decide>, problem: string | undefined): void => {
  expect(decision.actions).toEqual([{ _tag: "Attempt", problem }])
  expect(decision.deferUntilMs).toBe(nowMs + backgroundTaskLeaseMs)
}

const expectOver = (decision: ReturnType<typeof decide>): void => {
  expect(decision.removesActor).toBe(true)
  expect(decision.actions).toBeUndefined()
}

const expectNothing = (decision: ReturnType<typeof decide>): void =>
  expect(effectsOf(decision)).toBeUndefined()

const ignores = (state: BackgroundTaskState) => ({
  CopyListed: () => expectNothing(decide(state, copyListed, fetching)),
  NotificationChecked: () => expectNothing(decide(state, checked(false), fetching)),
  CopyRemoved: () => expectNothing(decide(state, copyRemoved, fetching)),
  Obsolete: () => expectNothing(decide(state, obsolete, fetching)),
  Attempted: () => expectNothing(decide(state, attempted(delivered), fetching))
})

/** The content is there already: the task only watches over its notification. */
const expectWatching = (state: BackgroundTaskState): void =>
  expectIn(
    decide(state, inlinedFound, inlining),
    { _tag: "Copied", copy: inlined, isListed: true, checks: 1 },
    { _tag: "CheckNotification", check: 1 }
  )

/** An action runs in a new state, until its lease ends. */
const expectIn = (
  decision: ReturnType<typeof decide>,
  state: BackgroundTaskState,
  ...actions: ReadonlyArray<BackgroundTaskAction>
): void => {
  expect(decision.nextState).toEqual(state)
  expect(decision.timerAtMs).toBe(nowMs)
  expect(decision.deferUntilMs).toBe(nowMs + backgroundTaskLeaseMs)
  expect(decision.actions ?? []).toEqual(actions)
}

const expectRemoval = (decision: ReturnType<typeof decide>): void =>
  expectIn(decision, removing, { _tag: "RemoveCopy", copy })

const expectReport = (decision: ReturnType<typeof decide>, problem: string): void => {
  expect(decision.nextState).toEqual({ _tag: "Reporting", problem, tries: 0, nextAtMs: nowMs })
  expect(decision.timerAtMs).toBe(nowMs)
  expectAttempt(decision, problem)
}

describe("the background task's table", () => {
  testCells(table, {
    "Absent.TimerFired": () => expectAttempt(decide(absent, timerFired, fetching), undefined),
    "Absent.CopyNamed": () => {
      const decision = decide(absent, copyNamed, fetching)
      expectIn(decision, { _tag: "Retrying", tries: 0, nextAtMs: nowMs, copy })
      expect(decision.answer).toEqual({ _tag: "Named", copy })
    },
    "Absent.Attempted": () => {
      // The task has ended, and its copy is removed: a slow attempt.
      expectOver(decide(absent, attempted(delivered), fetching))
      expectOver(decide(absent, attempted(delivered), receipting))
      expectReport(decide(absent, attempted(refused), fetching), "not found")
      expectOver(decide(absent, attempted(refused), receipting))
      const again = decide(absent, attempted(faulted), receipting)
      expect(again.nextState).toEqual({ _tag: "Retrying", tries: 1, nextAtMs: nowMs + 1_000 })
      expect(again.timerAtMs).toBe(nowMs + 1_000)
      const later = decide(absent, attempted(deferred), fetching)
      expect(later.nextState).toEqual({ _tag: "Retrying", tries: 0, nextAtMs: nowMs + 5 })
    },
    "Absent.InlinedFound": () => expectWatching(absent),
    "Absent.Obsolete": () => expectOver(decide(absent, obsolete, fetching)),
    "Absent.CopyListed": ignores(absent).CopyListed,
    "Absent.NotificationChecked": ignores(absent).NotificationChecked,
    "Absent.CopyRemoved": ignores(absent).CopyRemoved,
    "Retrying.TimerFired": () => {
      expectAttempt(decide(retrying, timerFired, fetching), undefined)
      const early: BackgroundTaskState = { _tag: "Retrying", tries: 1, nextAtMs: nowMs + 9 }
      expect(effectsOf(decide(early, timerFired, fetching))).toEqual({ timerAtMs: nowMs + 9 })
    },
    "Retrying.CopyNamed": () => {
      expectIn(decide(retrying, copyNamed, fetching), storing)
      // A repeated attempt stores the copy that the first one has named.
      const another: BackgroundTaskMessage = { _tag: "CopyNamed", copy: { contentId: "c2" } }
      expectOnlyReply(decide(storing, another, fetching), { _tag: "Named", copy })
    },
    "Retrying.Attempted": () => {
      expectIn(decide(storing, attempted(delivered), fetching), copied, { _tag: "ListCopy", copy })
      expect(decide(storing, attempted(deferred), fetching).nextState).toMatchObject({ copy })
      expect(decide(storing, attempted(refused), fetching).nextState).toMatchObject({ copy })
      const next = decide(retrying, attempted(faulted), fetching)
      expect(next.nextState).toEqual({ _tag: "Retrying", tries: 2, nextAtMs: nowMs + 60_000 })
      const last: BackgroundTaskState = { _tag: "Retrying", tries: 2, nextAtMs: nowMs }
      expectReport(decide(last, attempted(faulted), fetching), "no answer in time")
      expectOver(decide(last, attempted(faulted), receipting))
    },
    "Retrying.InlinedFound": () => expectWatching(retrying),
    "Retrying.Obsolete": () => {
      expectOver(decide(retrying, obsolete, fetching))
      expectRemoval(decide(storing, obsolete, fetching))
    },
    "Retrying.CopyListed": ignores(retrying).CopyListed,
    "Retrying.NotificationChecked": ignores(retrying).NotificationChecked,
    "Retrying.CopyRemoved": ignores(retrying).CopyRemoved,
    "Reporting.TimerFired": () => {
      expectAttempt(decide(reporting, timerFired, fetching), "gone")
      const early: BackgroundTaskState = { ...reporting, nextAtMs: nowMs + 9 }
      expect(effectsOf(decide(early, timerFired, fetching))).toEqual({ timerAtMs: nowMs + 9 })
    },
    "Reporting.CopyNamed": () =>
      expectRefused(decide(reporting, copyNamed, fetching), "Superseded"),
    "Reporting.Attempted": () => {
      expectRemoval(decide({ ...reporting, copy }, attempted(delivered), fetching))
      expectRemoval(decide({ ...reporting, copy }, attempted(refused), fetching))
      expectOver(decide(reporting, attempted(delivered), fetching))
      expectOver(decide(reporting, attempted(refused), fetching))
      expect(decide(reporting, attempted(faulted), fetching).nextState).toEqual({
        ...reporting,
        tries: 1,
        nextAtMs: nowMs + 1_000
      })
      expect(decide(reporting, attempted(deferred), fetching).nextState).toEqual({
        ...reporting,
        nextAtMs: nowMs + 5
      })
      expectOver(decide({ ...reporting, tries: 2 }, attempted(faulted), fetching))
    },
    "Reporting.InlinedFound": () => expectWatching(reporting),
    "Reporting.Obsolete": () => {
      expectOver(decide(reporting, obsolete, fetching))
      expectRemoval(decide({ ...reporting, copy }, obsolete, fetching))
    },
    "Reporting.CopyListed": ignores(reporting).CopyListed,
    "Reporting.NotificationChecked": ignores(reporting).NotificationChecked,
    "Reporting.CopyRemoved": ignores(reporting).CopyRemoved,
    "Copied.TimerFired": () => {
      expect(decide(copied, timerFired, fetching).actions).toEqual([{ _tag: "ListCopy", copy }])
      const check: BackgroundTaskAction = { _tag: "CheckNotification", check: 2 }
      expectIn(decide(listed, timerFired, fetching), { ...listed, checks: 2 }, check)
    },
    "Copied.CopyNamed": () => expectRefused(decide(copied, copyNamed, fetching), "Superseded"),
    "Copied.Attempted": ignores(copied).Attempted,
    "Copied.InlinedFound": () => expectNothing(decide(listed, inlinedFound, inlining)),
    "Copied.Obsolete": ignores(listed).Obsolete,
    "Copied.CopyListed": () => {
      const check: BackgroundTaskAction = { _tag: "CheckNotification", check: 1 }
      expectIn(decide(copied, copyListed, fetching), listed, check)
    },
    "Copied.NotificationChecked": () => {
      expect(effectsOf(decide(listed, checked(true), fetching))).toEqual({ timerAtMs: null })
      expectNothing(decide({ ...listed, checks: 2 }, checked(true), fetching))
      expectRemoval(decide(listed, checked(false), fetching))
      expectRemoval(decide({ ...listed, checks: 2 }, checked(false), fetching))
    },
    "Copied.CopyRemoved": ignores(listed).CopyRemoved,
    "Removing.TimerFired": () => {
      const decision = decide(removing, timerFired, fetching)
      expect(decision.actions).toEqual([{ _tag: "RemoveCopy", copy }])
      expect(decision.deferUntilMs).toBe(nowMs + backgroundTaskLeaseMs)
    },
    "Removing.CopyNamed": () => expectRefused(decide(removing, copyNamed, fetching), "Superseded"),
    "Removing.Attempted": ignores(removing).Attempted,
    "Removing.InlinedFound": () => expectNothing(decide(removing, inlinedFound, inlining)),
    "Removing.Obsolete": ignores(removing).Obsolete,
    "Removing.CopyListed": ignores(removing).CopyListed,
    "Removing.NotificationChecked": ignores(removing).NotificationChecked,
    "Removing.CopyRemoved": () => expectOver(decide(removing, copyRemoved, fetching))
  })
})

describe("a receipt for content of this service", () => {
  it("is stored once, however often it is sent, and once for each status", async () => {
    const message = new Model(content(noDependencies))
    const body = { blobId: "b0", type: "text/plain", lengthBytes: 5, digest: "d" }
    message.send({ _tag: "Publish", requestId: "r", body, editHash: hash("edit") }, nowMs)
    const peers: Peers = {
      ...noPeers,
      // The runtime's type of a message is wider; a receipt asks content only.
      ask: (_to, asked) =>
        Effect.sync(() => message.send(asked as unknown as ContentMessage, nowMs))
    }
    const send = (key: string, status: "received" | "problem", problem?: string) => {
      const input = {
        pointer: { url: "http://post.test/content/c1", password: undefined },
        mailbox: "http://post.test/mailboxes/alice",
        settings: {
          deposit: "anyone",
          retention: "P1D",
          retentionMs: 86_400_000,
          fetch: "never",
          receipts: "received"
        },
        key,
        bounds: { cause: { kind: "account", id: "bob" } },
        guesser: "account bob"
      } as const
      return Effect.runPromise(sendReceipt(noDependencies, peers, input, status, problem))
    }
    const sent = { _tag: "Delivered", code: 202 }
    expect([await send("k1", "received"), await send("k1", "received")]).toEqual([sent, sent])
    expect(message.log.size).toBe(1)
    await send("k1", "problem")
    await send("k2", "received")
    expect(message.log.size).toBe(3)
    // Content refuses a longer description. A character above U+FFFF is not cut in two.
    const kept = "x".repeat(receiptDescriptionCharsMax - 1)
    await send("k3", "problem", `${kept}\u{1F600}`)
    expect(JSON.parse(decodeReceipt(message.log.get(4) ?? "").value))
      .toMatchObject({ status: "problem", description: kept })
  })
})

/** Room for every fetch, and a node's checks of passwords. */
const fetchResources = (): FetchResources => ({
  memory: { reserve: () => true, release: () => undefined },
  passwords: passwordChecks()
})

describe("the fetch of content of this service", () => {
  it("is repeated when the store cannot read the bytes to their end", async () => {
    const view = {
      body: { blobId: "c1=a", lengthBytes: 2, type: "text/plain", digest: "digest" },
      lastModifiedMs: nowMs,
      hasPassword: false
    }
    const peers: Peers = { ...noPeers, ask: () => Effect.succeed({ _tag: "Described", view }) }
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a")
      throw new Error("EIO")
    }
    const open = () => Effect.succeed(failing())
    const deps = { ...noDependencies, blobs: { ...noDependencies.blobs, open } }
    const input: TaskInput = {
      pointer: { url: "http://post.test/content/AAAAAAAAAAAAAAAAAAAAAA", password: undefined },
      mailbox: "http://post.test/mailboxes/alice",
      settings: {
        deposit: "anyone",
        retention: "PT1M",
        retentionMs: 60_000,
        fetch: "eager",
        receipts: "none"
      },
      key: "key",
      bounds: { cause: { kind: "account", id: "alice" } },
      guesser: "account alice"
    }
    const fetching = fetchContent(deps, peers, fetchResources(), input)
    expect(await Effect.runPromise(fetching)).toEqual({
      _tag: "RetryableFailure",
      problem: "the store could not read the content"
    })
  })
})

type Describe = Extract<ContentMessage, { readonly _tag: "Describe" }>

/** Content of this service with the message password `right`, and the throttles of its guessers. */
const peersOfProtected = (): Peers => {
  const throttles = new Map<string, ThrottleState>()
  const body = { blobId: "b1", lengthBytes: 1, type: "text/plain" }
  return {
    ...noPeers,
    ask: ({ id, kind }, asked) => {
      if (kind !== throttle.kind) {
        const { access } = asked as unknown as Describe // the only message of a fetch
        return Effect.succeed(
          access.passwordHash === sha256("right")
            ? { _tag: "Described", view: { body } }
            : { _tag: "Refused", reason: "Unauthenticated" }
        )
      }
      const decided = decider<ThrottleState, ThrottleMessage, ThrottleReply>(throttleTable)(
        throttles.get(id) ?? throttle.initial,
        asked as ThrottleMessage
      )
      if (decided.nextState !== undefined) throttles.set(id, decided.nextState)
      return Effect.succeed(decided.answer)
    }
  }
}

describe("content of this service with a message password", () => {
  const peers = peersOfProtected()
  const blobs = { ...noDependencies.blobs, open: () => Effect.succeed(Readable.from(["x"])) }
  const resources = fetchResources()
  const fetched = async (guesser: string, password: string) => {
    const url = "http://post.test/content/c1"
    const settings = {
      deposit: "anyone",
      retention: "P1D",
      retentionMs: 86_400_000,
      fetch: "eager",
      receipts: "none"
    } as const
    const mailbox = "http://post.test/mailboxes/alice"
    const bounds = { cause: { kind: "account", id: "alice" } } as const
    const input = { pointer: { url, password }, mailbox, settings, key: "k1", bounds, guesser }
    const deps = { ...noDependencies, blobs } as unknown as BackgroundTaskDependencies
    return (await Effect.runPromise(fetchContent(deps, peers, resources, input)))._tag
  }

  it("is fetched with few wrong passwords of a depositor, and then waits", async () => {
    for (let n = 0; n < wrongPasswordsMax; n += 1) {
      expect(await fetched("account mallory", `guess-${n}`)).toBe("PermanentFailure")
    }
    // The right one is no different from a wrong one.
    expect(await fetched("account mallory", "right")).toBe("Deferred")
    expect(await fetched("account mallory", "another")).toBe("Deferred")
    for (let n = 0; n <= wrongPasswordsMax; n += 1) {
      expect(await fetched("account bob", "right")).toBe("Fetched")
    }
  })

  it("is checked for few at once, so that guesses at once are bounded too", async () => {
    const guesses = Array.from({ length: 100 }, (_, n) => fetched("account eve", `guess-${n}`))
    const checked = (await Promise.all(guesses)).filter((tag) => tag === "PermanentFailure")
    expect(checked.length).toBeGreaterThanOrEqual(wrongPasswordsMax)
    expect(checked.length).toBeLessThan(wrongPasswordsMax + passwordChecksMax)
  })
})

describe("the id of a copy", () => {
  it("has 128 random bits, which no sender can derive", () => {
    const ids = Array.from({ length: 100 }, () => newCopy().contentId)
    expect(new Set(ids).size).toBe(100)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{22}$/)
  })
})

describe("the keys of copies", () => {
  it("stand in the order of the log", () => {
    const numbers = [1, 9, 10, 99, 100, 1_000_000]
    const keys = numbers.map((n) => cachedKey("alice", n))
    expect(keys.toSorted()).toEqual(keys)
  })
})
