import {
  array,
  assert,
  constant,
  constantFrom,
  integer,
  nat,
  oneof,
  property,
  record
} from "fast-check"
import type { Arbitrary } from "fast-check"
import { describe, expect, it } from "vitest"
import { retentionSteps } from "../../actors/limits.ts"
import { mailbox } from "../../actors/mailbox/actor.ts"
import { decodeItem } from "../../actors/mailbox/item.ts"
import { defaultSettings } from "../../actors/mailbox/protocol.ts"
import { hash, nowMs as startMs } from "./cells.ts"
import { Model } from "./model.ts"

type Command =
  | { readonly _tag: "Deposit"; readonly document: number }
  | { readonly _tag: "Read"; readonly from: number; readonly count: number }
  | { readonly _tag: "Remove"; readonly n: number }
  | { readonly _tag: "Pass"; readonly ms: number }
  | { readonly _tag: "Restart" }

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
      ms: constantFrom(1, 30, 700, retentionMs, retentionMs + 200, -5000)
    }),
    record({ _tag: constant("Restart" as const) })
  ),
  { maxLength: 80 }
)

/** What the simple model knows of one notification. */
interface Known {
  readonly document: number
  readonly random: string
  retrievedAtMs: number | undefined
  removed: boolean
}

class World {
  nowMs = startMs
  latestMs = startMs
  readonly known: Array<Known> = []
  readonly actor = new Model(mailbox({ notificationsMax: 20 }))

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
    const ageMs = this.latestMs - known.retrievedAtMs
    if (ageMs < retentionMs) return true
    return this.nowMs - known.retrievedAtMs >= retentionMs + retentionMs / retentionSteps
      ? false
      : undefined
  }

  there(n: number): boolean {
    return this.actor.log.has(n)
  }

  run(command: Command): void {
    const { actor, nowMs } = this
    switch (command._tag) {
      case "Deposit": {
        const { document } = command
        const random = `r${this.known.length}`.padEnd(22, "_")
        const first =
          this.known.findIndex((one, at) => one.document === document && this.there(at + 1)) + 1
        const full = actor.log.size >= 20
        const reply = actor.send({
          _tag: "Deposit",
          fragment: `<item>${document}</item>`,
          digest: `d${document}`.padEnd(22, "_"),
          idRandom: random
        }, nowMs)
        if (first > 0) return expect(reply).toMatchObject({ n: first, repeated: true })
        if (full) return expect(reply).toMatchObject({ reason: "Full" })
        expect(reply).toMatchObject({ n: this.known.length + 1, repeated: false })
        this.known.push({ document, random, retrievedAtMs: undefined, removed: false })
        return
      }
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
      case "Remove": {
        const { n } = command
        const was = this.there(n)
        const reply = actor.send({ _tag: "Remove", n, reader: { account: "alice" } }, nowMs)
        if (was) expect(reply).toEqual({ _tag: "Done" })
        else expect(reply).toMatchObject({ _tag: "Refused" })
        const known = this.known[n - 1]
        if (known !== undefined) known.removed = true
        return
      }
      case "Pass":
        this.nowMs += command.ms
        this.latestMs = Math.max(this.latestMs, this.nowMs)
        return actor.wake(this.nowMs)
      case "Restart":
        return actor.restart()
    }
  }

  check(): void {
    let before = 0
    for (let n = 1; n <= this.known.length + 1; n++) {
      const expected = this.expected(n)
      if (expected !== undefined) expect(this.there(n), `item ${n}`).toBe(expected)
      const value = this.actor.log.get(n)
      if (value === undefined) continue
      const item = decodeItem(value)
      expect(item.idRandom).toBe(this.known[n - 1]?.random)
      expect(item.fragment).toBe(`<item>${this.known[n - 1]?.document}</item>`)
      expect(item.atMs).toBeGreaterThanOrEqual(before)
      before = item.atMs
    }
    const listed = this.actor.send({ _tag: "List", reader: { account: "alice" } }, this.nowMs)
    expect(listed).toMatchObject({
      view: {
        head: this.known.length,
        removed: this.known.length - this.actor.log.size
      }
    })
    if (before > 0) expect(listed).toMatchObject({ view: { lastAtMs: expect.any(Number) } })
  }
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
      { numRuns: 400 }
    )
  })

  it("removes all that it held when it is destroyed, restarts or not", () => {
    const world = new World()
    for (let n = 0; n < 15; n++) world.run({ _tag: "Deposit", document: n })
    world.run({ _tag: "Remove", n: 4 })
    world.actor.send({ _tag: "Destroy", caller: { account: "alice", admin: false } }, startMs)
    world.actor.restart()
    world.actor.wake(startMs)
    expect(world.actor.log.size).toBe(0)
    expect(world.actor.state).toEqual({ _tag: "Destroyed", destroyedAtMs: startMs, left: [] })
  })
})
