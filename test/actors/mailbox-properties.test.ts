import { type Arbitrary, array, assert, constant, constantFrom, integer, nat, oneof, property,
  record } from "fast-check"
import { describe, expect, it } from "vitest"
import { eventRetentionMs, expiryReadRetryMs, removedRangesMax,
  retentionSteps } from "../../actors/limits.ts"
import { mailbox } from "../../actors/mailbox/actor.ts"
import { decodeItem, decodeRemoval, isRemoval, itemAtMs,
  notificationId } from "../../actors/mailbox/log-item.ts"
import type { MailboxMessage, MailboxReply, MailboxState } from "../../actors/mailbox/protocol.ts"
import { covers } from "../../actors/mailbox/ranges.ts"
import { type DecodedState, laterFields } from "../../actors/schemas.ts"
import { hash, nowMs as startMs } from "./cells.ts"
import { Model } from "./model.ts"
import { defaultSettings } from "./mailbox-settings.ts"

type Command =
  | { readonly _tag: "Deposit"; readonly document: number }
  | { readonly _tag: "Read"; readonly from: number; readonly count: number }
  | { readonly _tag: "Remove"; readonly n: number }
  | { readonly _tag: "Pass"; readonly ms: number }
  | { readonly _tag: "Restart" }
  | { readonly _tag: "Register" }
  | { readonly _tag: "Unregister" }

const retentionMs = 10_000
const commands: Arbitrary<ReadonlyArray<Command>> = array(
  oneof(
    { weight: 4, arbitrary: record({ _tag: constant("Deposit" as const), document: nat(12) }) },
    {
      weight: 2,
      arbitrary: record({
        _tag: constant("Read" as const),
        from: integer({ min: 1, max: 40 }),
        count: integer({ min: 1, max: 10 })
      })
    },
    record({ _tag: constant("Remove" as const), n: integer({ min: 0, max: 40 }) }),
    record({
      _tag: constant("Pass" as const),
      ms: constantFrom(
        1,
        30,
        300,
        700,
        retentionMs - 15,
        retentionMs,
        retentionMs + 200,
        -5000,
        eventRetentionMs
      )
    }),
    record({ _tag: constantFrom("Restart" as const, "Register" as const, "Unregister" as const) })
  ),
  { maxLength: 80, size: "max" }
)

/** What the actor finds when it reads expired items. */
const readExpired = (
  log: ReadonlyMap<number, string>,
  numbers: ReadonlyArray<number>
): MailboxMessage => {
  const items = numbers.map((n) => ({ n, value: log.get(n) }))
  return {
    _tag: "Expire",
    removed: items.flatMap(({ n, value }) =>
      value === undefined || isRemoval(value)
        ? []
        : [{ n, idRandom: decodeItem(value).idRandom }]
    ),
    events: items.flatMap(({ n, value }) => value !== undefined && isRemoval(value) ? [n] : []),
    missing: items.flatMap(({ n, value }) => value === undefined ? [n] : [])
  }
}

/** What the simple model knows of one log item. */
interface Known {
  /** Undefined for what tells of a removal. */
  readonly document: number | undefined
  readonly random: string
  /** How long it is kept after its retrieval. */
  readonly keptMs: number
  retrievedAtMs: number | undefined
  removed: boolean
}

const reader = { account: "alice" }

class World {
  nowMs = startMs
  latestMs = startMs
  registered = false
  readonly known: Array<Known> = []
  readonly actor = new Model(mailbox({ notificationsMax: 20, anonymousBytesMax: 1e9 }))

  constructor() {
    this.actor.send({
      _tag: "Create",
      requestId: "r",
      owner: "alice",
      settings: { ...defaultSettings, retention: "PT10S", retentionMs },
      passwordHash: hash("password"),
      sharedHash: hash("shared")
    }, this.nowMs)
  }

  /** Whether item `n` must be there, must not, or may be either (within a step of retention). */
  expected(n: number): boolean | undefined {
    const known = this.known[n - 1]
    if (known === undefined || known.removed) return false
    if (known.retrievedAtMs === undefined) return true
    if (this.latestMs - known.retrievedAtMs < known.keptMs) return true
    return this.nowMs - known.retrievedAtMs >= known.keptMs + retentionMs / retentionSteps
      ? false
      : undefined
  }

  there(n: number): boolean {
    return this.actor.log.has(n)
  }

  /** The ids of the notifications that are stored. */
  stored(): ReadonlyArray<string> {
    return [...this.actor.log].flatMap(([n, value]) =>
      isRemoval(value) ? [] : [notificationId(n, decodeItem(value).idRandom)]
    )
  }

  /** Does what the mailbox has asked for; what it answers comes twice. */
  perform(): boolean {
    const actions = this.actor.actions.splice(0)
    for (const { numbers } of actions) {
      const found = readExpired(this.actor.log, numbers)
      this.actor.send(found, this.nowMs)
      this.actor.send(found, this.nowMs)
    }
    return actions.length > 0
  }

  /** Runs a command; with registrations, the log must have an event of each removal. */
  run(command: Command): void {
    const before = this.stored()
    const { registered } = this
    this.carryOut(command)
    const after = new Set(this.stored())
    const recorded = [...this.actor.log].flatMap(([n, value]) => {
      if (n <= this.known.length) return []
      this.known.push({
        document: undefined,
        random: "",
        keptMs: eventRetentionMs,
        retrievedAtMs: this.nowMs,
        removed: false
      })
      return decodeRemoval(value)
    })
    expect(recorded.toSorted())
      .toEqual(registered ? before.filter((id) => !after.has(id)).toSorted() : [])
  }

  private carryOut(command: Command): void {
    const { actor, nowMs } = this
    switch (command._tag) {
      case "Deposit":
        return this.deposit(command.document)
      case "Read": {
        const { from, count } = command
        const numbers = [...actor.log.keys()].filter((n) => n >= from).slice(0, count)
        const last = numbers.at(-1)
        if (numbers[0] === undefined || last === undefined) return
        actor.send({ _tag: "Retrieved", from: numbers[0], to: last }, nowMs)
        for (const n of numbers) {
          const known = this.known[n - 1]
          if (known !== undefined) known.retrievedAtMs ??= nowMs
        }
        return
      }
      case "Remove":
        return this.remove(command.n)
      case "Pass":
        this.nowMs += command.ms
        this.latestMs = Math.max(this.latestMs, this.nowMs)
        do actor.fireTimer(this.nowMs)
        while (this.perform())
        return
      case "Restart":
        return actor.restart()
      case "Register":
        this.registered = true
        actor.send({ _tag: "Register", id: "alice=registration", reader }, nowMs)
        return
      case "Unregister":
        this.registered = false
        actor.send({ _tag: "Unregister", id: "alice=registration" }, nowMs)
    }
  }

  private deposit(document: number): void {
    const random = `r${this.known.length}`.padEnd(22, "_")
    const first =
      this.known.findIndex((one, at) => one.document === document && this.there(at + 1)) + 1
    const full = this.stored().length >= 20
    const reply = this.actor.send({
      _tag: "Deposit",
      fragment: `<item>${document}</item>`,
      digest: `d${document}`.padEnd(22, "_"),
      idRandom: random
    }, this.nowMs)
    if (first > 0) return expect(reply).toMatchObject({ n: first, repeated: true })
    if (full) return expect(reply).toMatchObject({ reason: "Full" })
    expect(reply).toMatchObject({ n: this.known.length + 1, repeated: false })
    const keptMs = retentionMs
    this.known.push({ document, random, keptMs, retrievedAtMs: undefined, removed: false })
  }

  private remove(n: number): void {
    const known = this.known[n - 1]
    // Nobody removes what tells of a removal: it has no URI.
    if (known !== undefined && known.document === undefined) return
    const idRandom = (known?.random ?? "none").padEnd(22, "_")
    const was = this.there(n)
    const reply = this.actor.send({ _tag: "Remove", n, idRandom, reader }, this.nowMs)
    if (was) expect(reply).toEqual({ _tag: "Done" })
    else expect(reply).toMatchObject({ _tag: "Refused" })
    if (known !== undefined) known.removed = true
  }

  check(): void {
    let before = 0
    for (let n = 1; n <= this.known.length + 1; n++) {
      const expected = this.expected(n)
      if (expected !== undefined) expect(this.there(n), `item ${n}`).toBe(expected)
      const value = this.actor.log.get(n)
      if (value === undefined) continue
      expect(itemAtMs(value)).toBeGreaterThanOrEqual(before)
      before = itemAtMs(value)
      if (isRemoval(value)) continue
      const item = decodeItem(value)
      expect(item.idRandom).toBe(this.known[n - 1]?.random)
      expect(item.fragment).toBe(`<item>${this.known[n - 1]?.document}</item>`)
    }
    const listed = this.actor.send({ _tag: "List", reader }, this.nowMs)
    expect(listed).toMatchObject({
      view: {
        head: this.known.length,
        removed: this.known.length - this.actor.log.size,
        notifications: this.stored().length
      }
    })
    if (before > 0) expect(listed).toMatchObject({ view: { lastAtMs: expect.any(Number) } })
  }
}

const partOf = (n: number): string => `${n}`.padEnd(22, "_")

/** An open mailbox with room for many notifications, and a deposit of item `n`. */
const openModel = () => {
  const actor = new Model(mailbox({ notificationsMax: 10_000, anonymousBytesMax: 1e9 }))
  const secrets = { passwordHash: hash("password"), sharedHash: hash("shared") }
  const create = { requestId: "r", owner: "alice", settings: defaultSettings, ...secrets }
  actor.send({ _tag: "Create", ...create }, startMs)
  const deposit = (n: number, nowMs: number): unknown =>
    actor.send(
      { _tag: "Deposit", fragment: "<item/>", digest: partOf(n), idRandom: partOf(n) },
      nowMs
    )
  return { actor, deposit }
}

describe("a mailbox", () => {
  it("equals a simple model in any interleaving of deposits, reads, deletions, restarts", () => {
    assert(
      property(commands, (sequence) => {
        const world = new World()
        for (const command of sequence) {
          world.run(command)
          world.check()
        }
      }),
      { numRuns: process.env["TEST_LONG"] === "1" ? 300 : 40 }
    )
  })

  it("counts what it has, also after it has forgotten which items were removed", () => {
    const { actor, deposit } = openModel()
    const expectCounted = () =>
      expect(actor.send({ _tag: "List", reader }, startMs))
        .toMatchObject({ view: { notifications: actor.log.size } })
    const count = 2 * (removedRangesMax + 200)
    for (let n = 1; n <= count; n++) deposit(n, startMs)
    actor.send({ _tag: "Retrieved", from: 1, to: count }, startMs)
    for (let n = 2; n <= count; n += 2) {
      actor.send({ _tag: "Remove", n, idRandom: partOf(n), reader }, startMs)
    }
    expectCounted()
    const laterMs = startMs + 2 * defaultSettings.retentionMs
    for (let round = 0; round < 20; round++) {
      // A lost read is repeated after a while.
      actor.fireTimer(laterMs + round * expiryReadRetryMs)
      for (const { numbers } of actor.actions.splice(0)) {
        actor.send(readExpired(actor.log, numbers), laterMs)
        expectCounted()
      }
    }
    expect(actor.log.size).toBe(0)
    for (let n = count + 1; n <= count + 100; n++) deposit(n, laterMs)
    expectCounted()
  })

  it.each([0, 1])("marks as read after 300 times of marks and expiry, %i stays", (staying) => {
    const { actor, deposit } = openModel()
    for (let n = 1; n <= staying; n++) deposit(n, startMs)
    let nowMs = startMs
    let head = staying
    const mark = (from: number, to: number): unknown =>
      actor.send({ _tag: "MarkRead", from, to, reader }, nowMs)
    for (let time = 0; time < 300; time++) {
      for (let n = 1; n <= 3; n++) deposit(head + n, nowMs)
      mark(head + 1, head + 2)
      actor.send({ _tag: "Retrieved", from: head + 1, to: head + 3 }, nowMs)
      nowMs += defaultSettings.retentionMs
      actor.fireTimer(nowMs)
      expect(actor.log.size).toBe(staying)
      head += 3
    }
    deposit(head + 1, nowMs)
    mark(head + 1, head + 1)
    const listed = actor.send({ _tag: "List", reader }, nowMs) as MailboxReply // of a reader
    if (listed._tag !== "Listed") throw new Error(listed._tag)
    expect(covers(listed.view.read ?? [], head + 1)).toBe(true)
  })

  it("removes all that it held when it is destroyed, restarts or not", () => {
    const world = new World()
    for (let n = 0; n < 15; n++) world.run({ _tag: "Deposit", document: n })
    world.run({ _tag: "Remove", n: 4 })
    world.actor.send({ _tag: "Destroy", caller: { account: "alice", admin: false } }, startMs)
    world.actor.restart()
    world.actor.fireTimer(startMs)
    expect(world.actor.log.size).toBe(0)
    const { [laterFields]: _later, ...state }: MailboxState & DecodedState = world.actor.state
    expect(state).toEqual({
      _tag: "Destroyed",
      destroyedAtMs: startMs,
      left: [],
      fetched: 0,
      inlined: 0
    })
  })
})
