/** The record of the inspector is bounded, and says honestly what it does not know. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, it } from "vitest"
import { ActorDefect, address, type AskFailure, AskTimeout, encodeStoredState, type MessageTexts,
  MessageTooLarge, StorageFull, StorageUnavailable,
  UnknownMessage } from "../../../runtime/index.ts"
import { commitOf } from "../../suites/commit.ts"
import { Recorder } from "../../../runtime/recording/recorder.ts"
import type { Commit } from "../../../runtime/ports/index.ts"

const of = address("counter", "visits")

/** A commit that finds a record of revision 1. */
const commit = (parts: Partial<Commit>): Commit => commitOf({ address: of, expected: 1, ...parts })

const stored = (text: string): string => encodeStoredState({ format: 1, text })

it("keeps the last 1,000 messages", () => {
  const recorder = new Recorder()
  const outcomes = Array.from(
    { length: 3_500 },
    (_, by) => recorder.onMessage(of, { _tag: "Add", ...{ by } }, false)
  )
  expect(recorder.messagesOf({}, 5_000)).toHaveLength(1_000)
  expect(recorder.messagesOf({}, 1)).toMatchObject([{ seq: 3_500, outcome: "waiting" }])
  // The first has left; the last gets its outcome.
  outcomes[0]?.(undefined, "too late")
  outcomes[3_499]?.(undefined, 5n)
  const [last, ...others] = recorder.messagesOf({}, 5_000)
  expect(last).toMatchObject({ seq: 3_500, outcome: "replied", result: "\"5n\"" })
  expect(others.filter(({ outcome }) => outcome !== "waiting")).toEqual([])
})

it("keeps only the texts that it is given, cut", () => {
  const texts: MessageTexts = {
    ofMessage: (to, { _tag }) => `${_tag} to ${to.kind} ${"x".repeat(10_000)}`,
    ofOutcome: (failure) => failure?._tag
  }
  const recorder = new Recorder(Date.now, texts)
  const say = { _tag: "Say", ...{ text: "secret" } }
  recorder.onMessage(of, say, false)(undefined, { _tag: "Said", text: "secret" })
  const key = "counter/visits"
  recorder.onMessage(of, say, false)(new UnknownMessage({ key, detail: "secret" }), undefined)
  expect(JSON.stringify(recorder.messagesOf({}, 10))).not.toContain("secret")
  expect(recorder.messagesOf({}, 10)).toMatchObject([
    { outcome: "failed", result: "UnknownMessage" },
    { outcome: "replied", result: undefined, tag: "Say" }
  ])
  expect(recorder.messagesOf({}, 1)[0]?.content).toMatch(/^Say to counter x{4081}…$/)
})

it("cuts long messages, and shows those that are no JSON", () => {
  const recorder = new Recorder()
  const circular: Record<string, unknown> = {}
  circular["self"] = circular
  recorder.onMessage(of, { _tag: "Say", ...{ text: "x".repeat(10_000) } }, true)
  recorder.onMessage(of, { _tag: "Say", ...{ circular } }, false)
  const [second, first] = recorder.messagesOf(of, 2)
  expect(second?.content).toBe("a value that is no JSON")
  expect(first?.content).toHaveLength(4 * 1024 + 1)
  expect(first?.isFromTimer).toBe(true)
})

it("keeps the beginning of long replies and details, and not the whole of them", () => {
  setFlagsFromString("--expose-gc")
  // The flag gives it to new contexts only.
  const collect = runInNewContext("gc") as () => void
  const recorder = new Recorder()
  const charsEach = 500_000
  const messages = 100
  collect()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < messages; n++) {
    const ended = recorder.onMessage(of, { _tag: "Say" }, false)
    const text = `${n}`.repeat(charsEach).slice(0, charsEach)
    if (n % 2 === 0) ended(undefined, text)
    else ended(undefined, { _tag: "Refused", reason: "Long", detail: text })
  }
  for (const { result } of recorder.messagesOf(of, messages)) {
    expect(result).toHaveLength(4 * 1024 + 1)
  }
  collect()
  // What is cut off would be 50 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(messages * charsEach / 4)
})

it("keeps the last 2,000 commits, and those of each actor in order", () => {
  const recorder = new Recorder()
  const other = address("counter", "other")
  recorder.onCommit(commit({ address: other, expected: 0, state: stored("first") }), 1)
  for (let n = 1; n <= 2_500; n++) recorder.onCommit(commit({ state: stored(String(n)) }), 1)
  const commits = recorder.commitsOf(of)
  expect(commits.map(({ state }) => state?.text)).toEqual(
    Array.from({ length: 2_000 }, (_, at) => String(501 + at))
  )
  expect(recorder.commitsOf(other)).toEqual([])
  expect(recorder.changedActors(10)).toEqual(["counter/visits"])
})

it("keeps 16 Mi characters of states, and of a long state its length only", () => {
  const recorder = new Recorder()
  const large = "x".repeat(64 * 1024)
  for (let n = 0; n < 300; n++) recorder.onCommit(commit({ state: stored(large) }), 1)
  expect(recorder.commitsOf(of)).toHaveLength(256)
  recorder.onCommit(commit({ state: stored(`${large}x`) }), 1)
  const chars = 64 * 1024 + 1
  expect(recorder.commitsOf(of).at(-1)?.state).toEqual({ text: undefined, chars })
})

it("counts the text of a state for as long as a commit without a state shares it", () => {
  const recorder = new Recorder()
  const large = "x".repeat(64 * 1024)
  const actors = Array.from({ length: 600 }, (_, n) => address("counter", `n${n}`))
  const kept = new Set<string>()
  for (const [n, one] of actors.entries()) {
    recorder.onCommit(
      commit({ address: one, state: stored(`${n} ${large}`.slice(0, 64 * 1024)) }),
      1
    )
    // All earlier actors go on without writing their states.
    for (const other of actors.slice(Math.max(0, n - 10), n)) {
      recorder.onCommit(commit({ address: other }), 1)
    }
  }
  for (const one of actors) {
    for (const { state } of recorder.commitsOf(one)) kept.add(state?.text ?? "")
  }
  const chars = [...kept].reduce((sum, text) => sum + text.length, 0)
  expect(chars).toBeGreaterThan(10 * 1024 * 1024)
  expect(chars).toBeLessThanOrEqual(16 * 1024 * 1024)
})

it("knows what a commit left as it was only from a commit before", () => {
  const recorder = new Recorder()
  recorder.onCommit(commit({ head: 4, append: [{ n: 4, value: "item" }] }), 1)
  recorder.onCommit(commit({ state: stored("written"), head: 4, timer: 5 }), 1)
  recorder.onCommit(commit({ head: 5, append: [{ n: 5, value: "item" }] }), 1)
  recorder.onCommit(commit({ state: null }), 0)
  const shown = recorder.commitsOf(of).map(({ changesState, head, state, timerMs }) => [
    state === null ? null : state?.text,
    changesState,
    timerMs,
    head
  ])
  expect(shown).toEqual([
    [undefined, false, undefined, 4],
    ["written", true, 5, 4],
    ["written", false, 5, 5],
    [null, true, null, 0]
  ])
})

it("takes over nothing from a commit that another one followed, which was not recorded", () => {
  const recorder = new Recorder()
  const shownLast = () => {
    const last = recorder.commitsOf(of).at(-1)
    return [last?.state?.text, last?.timerMs]
  }
  recorder.onCommit(commit({ expected: 0, state: stored("first"), timer: 5 }), 7)
  recorder.onCommit(commit({ expected: 7, head: 1, append: [{ n: 1, value: "item" }] }), 7)
  expect(shownLast()).toEqual(["first", 5])
  // Its revision shows that the record was written: by another node, or by a commit without answer.
  recorder.onCommit(commit({ expected: 9, head: 2, append: [{ n: 2, value: "item" }] }), 9)
  expect(shownLast()).toEqual([undefined, undefined])
  recorder.onCommit(commit({ expected: 9, state: stored("second"), head: 2 }), 10)
  expect(shownLast()).toEqual(["second", undefined])
  // Another node has written it since.
  recorder.onCommit(
    commit({ expected: 10, head: 3, append: [{ n: 3, value: "item" }] }),
    Number.NaN
  )
  recorder.onCommit(commit({ expected: 11, head: 3, timer: 6 }), 12)
  expect(shownLast()).toEqual([undefined, 6])
})

it("distinguishes failures that changed nothing from those that may have", () => {
  const recorder = new Recorder()
  const key = "counter/visits"
  const outcomeOf = (failure: AskFailure) => {
    recorder.onMessage(of, { _tag: "Say" }, false)(failure, undefined)
    return recorder.messagesOf(of, 1)[0]?.outcome
  }
  expect(outcomeOf(new AskTimeout({ key, deadlineMs: 5 }))).toBe("indeterminate")
  expect(outcomeOf(new StorageUnavailable({ detail: "no answer" }))).toBe("indeterminate")
  expect(outcomeOf(new MessageTooLarge({ key, bytesMax: 5 }))).toBe("indeterminate")
  expect(outcomeOf(new StorageFull({ detail: "full" }))).toBe("failed")
  expect(outcomeOf(new StorageFull({ detail: "full", mayBeStored: true }))).toBe("indeterminate")
  expect(outcomeOf(new ActorDefect({ key }))).toBe("failed")
})
