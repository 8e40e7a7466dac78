import { Effect } from "effect"
import { array, assert, constantFrom, nat, property, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { audit } from "../../actors/audit/actor.ts"
import { ChainCheck, type ChainFault, chainStart, decodeEntry, encodeEntry,
  entryHash } from "../../actors/audit/chain.ts"
import { auditTable, emptyLog } from "../../actors/audit/decide.ts"
import type { AuditAction, AuditMessage, AuditReply, AuditState,
  ChainPoint } from "../../actors/audit/protocol.ts"
import { auditEntriesMax, auditLapseMs, auditOpenMax, auditRetryMs,
  auditTrimIntervalMs } from "../../actors/limits.ts"
import { address, type LogItem } from "../../runtime/index.ts"
import { decider, effectsOf, expectOnlyReply, expectRefused, nowMs, testCells } from "./cells.ts"
import { Model } from "./model.ts"

const dayMs = 86_400_000
const retentionMs = 365 * dayMs
const table = auditTable(retentionMs)
const decide = decider<AuditState, AuditMessage, AuditReply, AuditAction>(table)

const operation = { account: "admin", from: "192.0.2.7", action: "token.create", target: "/a" }
const recorded = { ...operation, outcome: "begun" as const }
const firstText = encodeEntry(chainStart.hash, { atMs: nowMs, ...recorded })
const first: ChainPoint = { n: 1, hash: entryHash(firstText), atMs: nowMs }
const begun: AuditState = {
  ...emptyLog,
  last: first,
  open: [{ n: 1, atMs: nowMs }],
  trimAtMs: nowMs + dayMs
}
const ended: AuditState = { ...begun, open: [] }
const begin: AuditMessage = { _tag: "Begin", operation }

describe("the audit log", () =>
  testCells(table, {
    "Recording.Begin": () => {
      const decision = decide(emptyLog, begin)
      expect(decision.answer).toEqual({ _tag: "Recorded", n: 1 })
      expect(effectsOf(decision)).toEqual({
        nextState: begun,
        items: [firstText],
        timerAtMs: nowMs + auditLapseMs
      })
      const open = Array.from({ length: auditOpenMax }, (_, at) => ({ n: at + 1, atMs: nowMs }))
      expectRefused(decide({ ...begun, open }, begin), "Busy")
    },
    "Recording.End": () => {
      const end: AuditMessage = { _tag: "End", n: 1, operation, outcome: "done" }
      const decision = decide(begun, end, { head: 1, nowMs: nowMs - 5 })
      const text = encodeEntry(first.hash, { atMs: nowMs, ...operation, outcome: "done", of: 1 })
      expect(decision.answer).toEqual({ _tag: "Recorded", n: 2 })
      expect(effectsOf(decision)).toEqual({
        nextState: { ...ended, last: { n: 2, hash: entryHash(text), atMs: nowMs } },
        items: [text],
        timerAtMs: nowMs + dayMs
      })
    },
    "Recording.Record": () => {
      const decision = decide(emptyLog, { _tag: "Record", operation, outcome: "begun" })
      expect(effectsOf(decision)).toEqual({
        nextState: ended,
        items: [firstText],
        timerAtMs: nowMs + auditTrimIntervalMs
      })
    },
    "Recording.Describe": () =>
      expectOnlyReply(decide(begun, { _tag: "Describe" }), {
        _tag: "Described",
        anchor: chainStart,
        last: first
      }),
    "Recording.Lapse": () => {
      const lapse: AuditMessage = { _tag: "Lapse", attempts: [{ n: 1, operation }] }
      const decision = decide(begun, lapse, { head: 1 })
      expect(decision.items?.map(decodeEntry)).toMatchObject([
        { ...operation, previous: first.hash, outcome: "unknown", of: 1 }
      ])
      expect(decision.nextState).toMatchObject({ open: [] })
      // Its outcome came meanwhile.
      expect(effectsOf(decide(ended, lapse, { head: 1 }))).toEqual({ timerAtMs: nowMs + dayMs })
      const unreadable: AuditMessage = { _tag: "Lapse", attempts: [{ n: 1 }] }
      expect(decide(begun, unreadable, { head: 1 }).items?.map(decodeEntry)).toMatchObject([
        { action: "unreadable", outcome: "unknown", of: 1 }
      ])
    },
    "Recording.Trim": () => {
      const trim: AuditMessage = { _tag: "Trim", upTo: first }
      expect(effectsOf(decide(ended, trim, { head: 1 }))).toEqual({
        nextState: { ...ended, anchor: first, trimAtMs: nowMs + dayMs },
        removals: [1],
        timerAtMs: nowMs + dayMs
      })
      // Nothing is old enough, or the result came twice.
      expect(effectsOf(decide(ended, { _tag: "Trim", upTo: chainStart }, { head: 1 }))).toEqual({
        nextState: { ...ended, trimAtMs: nowMs + dayMs },
        timerAtMs: nowMs + dayMs
      })
    },
    "Recording.TimerFired": () => {
      const fired: AuditMessage = { _tag: "TimerFired" }
      expect(effectsOf(decide(begun, fired))).toEqual({ timerAtMs: nowMs + auditLapseMs })
      const lateMs = nowMs + auditTrimIntervalMs
      expect(effectsOf(decide(begun, fired, { nowMs: lateMs }))).toEqual({
        timerAtMs: lateMs + auditRetryMs,
        actions: [
          { _tag: "ReadOpen", numbers: [1] },
          {
            _tag: "ReadOldest",
            from: chainStart,
            beforeMs: lateMs - retentionMs,
            surplusUpTo: 1 - auditEntriesMax
          }
        ]
      })
      const many: AuditState = { ...ended, last: { ...first, n: auditEntriesMax + 7 } }
      expect(decide(many, fired).actions).toMatchObject([{ _tag: "ReadOldest", surplusUpTo: 7 }])
    }
  }))

/** The first fault of these items between the ends that the log itself names. */
const faultOf = (
  state: AuditState,
  items: ReadonlyArray<LogItem>
): ChainFault | undefined => {
  const check = new ChainCheck(state.anchor)
  for (const item of items) {
    const fault = check.add(item)
    if (fault !== undefined) return fault
  }
  return check.end(state.last)
}

const itemsOf = ({ log }: { readonly log: ReadonlyMap<number, string> }): Array<LogItem> =>
  [...log].map(([n, value]) => ({ n, value })).toSorted((a, b) => a.n - b.n)

const self = address("audit", "log")
const behavior = audit({ auditRetentionMs: retentionMs })

/** A log with `count` entries, one each day. */
const logOf = (count: number) => {
  const model = new Model(behavior, self)
  for (let at = 0; at < count; at++) {
    model.send({ _tag: "Record", operation, outcome: "done" }, nowMs + at * dayMs)
  }
  return model
}

/** Performs what the log asks for until it asks for nothing more. */
const performAll = async (model: ReturnType<typeof logOf>, atMs: number): Promise<void> => {
  for (let action = model.actions.shift(); action !== undefined; action = model.actions.shift()) {
    const read = (_of: unknown, from: number, limit: number) =>
      Effect.succeed(itemsOf(model).filter(({ n }) => n >= from).slice(0, limit))
    const peers = { ask: () => Effect.succeed(undefined), read }
    const message = await Effect.runPromise(behavior.perform(action, self, peers))
    if (message !== undefined) model.send(message as AuditMessage, atMs) // as the runtime does
  }
}

describe("the chain", () => {
  it("finds any entry that is changed, exchanged, inserted or missing", () => {
    assert(property(
      nat(8),
      nat(8),
      constantFrom("change", "swap", "remove", "repeat", "cut"),
      (length, place, damage) => {
        const model = logOf(length + 2)
        const whole = itemsOf(model)
        expect(faultOf(model.state, whole)).toBeUndefined()
        const at = place % whole.length
        const items = [...whole]
        const item = items[at]
        if (item === undefined) return
        switch (damage) {
          case "change":
            items[at] = { n: item.n, value: item.value.replace("token.create", "token.revoke") }
            break
          case "swap": {
            const other = (at + 1) % items.length
            items[at] = { n: item.n, value: items[other]?.value ?? "" }
            items[other] = { n: other + 1, value: item.value }
            break
          }
          case "remove":
            items.splice(at, 1)
            break
          case "repeat":
            items.splice(at, 0, item)
            break
          case "cut":
            items.splice(at)
        }
        const fault = faultOf(model.state, items)
        expect(fault?.n).toBeGreaterThan(0)
        if (damage === "change" || damage === "remove" || damage === "cut") {
          expect(fault?.n).toBe(at + 1)
        }
      }
    ))
  })

  it("stays whole when old entries are removed, whatever is recorded meanwhile", async () => {
    const model = logOf(10)
    const laterMs = nowMs + retentionMs + 4 * dayMs + 1
    model.send({ _tag: "Record", operation, outcome: "done" }, laterMs)
    model.send({ _tag: "TimerFired" }, laterMs)
    model.send({ _tag: "Record", operation, outcome: "refused" }, laterMs)
    await performAll(model, laterMs)
    expect(itemsOf(model).map(({ n }) => n)).toEqual([6, 7, 8, 9, 10, 11, 12])
    expect(model.state.anchor.n).toBe(5)
    expect(faultOf(model.state, itemsOf(model))).toBeUndefined()
    expect(faultOf(model.state, itemsOf(model).slice(1))?.n).toBe(6)
  })

  it("has one outcome of each operation that began, unknown at the latest", async () => {
    await assertEachHasOutcome(["done", "refused", undefined, "done", undefined])
  })

  it("never goes back in time", () => {
    assert(property(
      array(record({ atMs: nat(1000), isEnd: constantFrom(true, false) }), { maxLength: 20 }),
      (steps) => {
        const model = logOf(0)
        for (const { atMs } of steps) model.send(begin, nowMs + atMs)
        const times = itemsOf(model).map(({ value }) => decodeEntry(value)?.atMs ?? 0)
        expect(times).toEqual(times.toSorted((a, b) => a - b))
        expect(faultOf(model.state, itemsOf(model))).toBeUndefined()
      }
    ))
  })
})

const assertEachHasOutcome = async (
  outcomes: ReadonlyArray<"done" | "refused" | undefined>
): Promise<void> => {
  const model = logOf(0)
  for (const outcome of outcomes) {
    const reply = model.send(begin, nowMs) as AuditReply // its only reply
    if (outcome === undefined || reply._tag !== "Recorded") continue
    model.send({ _tag: "End", n: reply.n, operation, outcome }, nowMs + 1)
  }
  const laterMs = nowMs + auditLapseMs + 1
  model.send({ _tag: "TimerFired" }, laterMs)
  await performAll(model, laterMs)
  const entries = itemsOf(model).map(({ value }) => decodeEntry(value))
  const found = entries.filter((entry) => entry?.of !== undefined)
    .toSorted((a, b) => (a?.of ?? 0) - (b?.of ?? 0))
    .map((entry) => entry?.outcome)
  expect(found).toEqual(outcomes.map((outcome) => outcome ?? "unknown"))
  expect(model.state.open).toEqual([])
  expect(faultOf(model.state, itemsOf(model))).toBeUndefined()
}
