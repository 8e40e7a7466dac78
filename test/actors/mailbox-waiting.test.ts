/** The bytes of strangers' notifications that wait in a mailbox: their count and their bound. */
import { array, assert, constantFrom, integer, nat, oneof, property, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { removedRangesMax, waitingPartsMax, waitingSavedItems } from "../../actors/limits.ts"
import { mailbox } from "../../actors/mailbox/actor.ts"
import { decodeItem, encodeItem, isRemoval } from "../../actors/mailbox/log-item.ts"
import { covers } from "../../actors/mailbox/ranges.ts"
import { waitingBytes, waitingBytesOf } from "../../actors/mailbox/waiting-bytes.ts"
import { hash, nowMs } from "./cells.ts"
import { decide, deposit, open, part } from "./mailbox-cells.ts"
import { defaultSettings } from "./mailbox-settings.ts"
import { Model } from "./model.ts"

const reader = { account: "alice" }

class World {
  readonly actor: ReturnType<typeof modelOf>
  private deposits = 0
  private readonly inlined = new Map<string, number>()

  constructor(anonymousBytesMax: number) {
    this.actor = modelOf(anonymousBytesMax)
    this.actor.send({
      _tag: "Create",
      requestId: "r",
      owner: "alice",
      settings: defaultSettings,
      passwordHash: hash("password"),
      sharedHash: hash("shared")
    }, nowMs)
  }

  deposit(fragment: string, account?: string, inlinedBytes?: number) {
    const id = String(this.deposits++).padStart(12, "0")
    if (inlinedBytes !== undefined) this.inlined.set(part(id), inlinedBytes)
    return this.actor.send({
      _tag: "Deposit",
      fragment,
      digest: part(id),
      idRandom: part(id),
      ...inlinedBytes === undefined ? {} : { isInlined: true, inlinedBytes },
      ...account === undefined ? { network: "192.0.2.0/24" } : { account }
    }, nowMs)
  }

  retrieve(from: number, to: number): void {
    this.actor.send({ _tag: "Retrieved", from, to }, nowMs)
  }

  remove(n: number): void {
    const value = this.actor.log.get(n)
    if (value === undefined || isRemoval(value)) return
    const { idRandom } = decodeItem(value)
    this.actor.send({ _tag: "Remove", n, idRandom, reader }, nowMs)
  }

  get state() {
    const { state } = this.actor
    if (state._tag !== "Open") throw new Error("the mailbox is not open")
    return state
  }

  get counted(): number {
    return waitingBytes(this.state.waiting)
  }

  /** The bytes that wait, by the log. */
  get exact(): number {
    return [...this.actor.log].reduce((sum, [n, value]) => {
      if (isRemoval(value) || covers(this.state.retrieved, n)) return sum
      const { account, idRandom } = decodeItem(value)
      if (account !== undefined) return sum
      return sum + waitingBytesOf(value, this.inlined.get(idRandom))
    }, 0)
  }

  get head(): number {
    return Math.max(0, ...this.actor.log.keys())
  }
}

const modelOf = (anonymousBytesMax: number) =>
  new Model(mailbox({ notificationsMax: 1_000_000, anonymousBytesMax }))

const fragmentOf = (size: number): string => `<item>${"ü".repeat(size)}</item>`

/** What the item of a fragment counts. */
const bytesOf = (fragment: string, inlinedBytes?: number): number =>
  waitingBytesOf(encodeItem(0, "", "", fragment), inlinedBytes)

describe("the bytes that strangers deposit", () => {
  const run = record({
    does: constantFrom("deposit", "retrieve", "remove", "restart"),
    account: constantFrom(undefined, undefined, undefined, "bob"),
    count: oneof(integer({ min: 1, max: 10 }), integer({ min: 1, max: 2 * waitingSavedItems })),
    at: nat(5_000),
    size: nat(40),
    inlinedBytes: oneof(constantFrom(undefined, undefined), nat(100_000))
  })

  it("are never counted too low, also after a restart, and not at all when all are read", () => {
    assert(
      property(array(run, { maxLength: 25 }), (runs) => {
        const world = new World(1e9)
        for (const { account, at, count, does, inlinedBytes, size } of runs) {
          const from = 1 + at % Math.max(1, world.head)
          if (does === "deposit") {
            for (let n = 0; n < count; n++) world.deposit(fragmentOf(size), account, inlinedBytes)
          } else if (does === "retrieve") world.retrieve(from, from + count)
          else if (does === "remove") { for (let n = 0; n < count; n++) world.remove(from + n) }
          else {
            const before = world.counted
            world.actor.restart()
            expect(world.counted).toBe(before)
          }
          expect(world.counted).toBeGreaterThanOrEqual(world.exact)
          expect(world.state.waiting.parts.length).toBeLessThanOrEqual(waitingPartsMax)
        }
        world.retrieve(1, world.head)
        expect(world.counted).toBe(0)
        world.actor.restart()
        expect(world.counted).toBe(0)
      }),
      { numRuns: 60 }
    )
  })

  it("are counted exactly while they are read and removed in their order", () => {
    const world = new World(1e9)
    const each = bytesOf(fragmentOf(1))
    const count = 3 * waitingSavedItems
    for (let n = 0; n < count; n++) world.deposit(fragmentOf(1))
    expect(world.counted).toBe(count * each)
    world.retrieve(1, waitingSavedItems)
    expect(world.counted).toBe((count - waitingSavedItems) * each)
    for (let n = 1; n <= count; n++) world.remove(n)
    expect([world.counted, world.exact]).toEqual([0, 0])
    expect(world.state.gone.length).toBeLessThan(removedRangesMax)
  })

  it("cost a write of the record once in many deposits", () => {
    expect(writesOf(10 * waitingSavedItems)).toBe(10)
  })

  it("have a bound, which accounts do not have, and reading or removing gives room back", () => {
    const each = bytesOf(fragmentOf(10))
    const world = new World(3 * each)
    for (let n = 1; n <= 3; n++) expect(world.deposit(fragmentOf(10))).toMatchObject({ n })
    const refused = world.deposit(fragmentOf(10))
    expect(refused).toMatchObject({ reason: "QuotaExceeded" })
    expect(JSON.stringify(refused)).toContain(
      `use ${3 * each} of ${3 * each} bytes (MAILBOX_ANONYMOUS_BYTES_MAX)`
    )
    expect(world.deposit(fragmentOf(10), "bob")).toMatchObject({ n: 4 })
    world.actor.restart()
    expect(world.deposit(fragmentOf(10))).toMatchObject({ reason: "QuotaExceeded" })
    world.retrieve(1, 4)
    expect(world.deposit(fragmentOf(10))).toMatchObject({ n: 5 })
    for (let n = 6; n <= 7; n++) expect(world.deposit(fragmentOf(10))).toMatchObject({ n })
    expect(world.deposit(fragmentOf(10))).toMatchObject({ reason: "QuotaExceeded" })
    for (let n = 5; n <= 7; n++) world.remove(n)
    expect(world.deposit(fragmentOf(10))).toMatchObject({ n: 8 })
  })
})

describe("the content that strangers' deposits bring", () => {
  it("counts with them until they are read, and those of accounts do not", () => {
    const world = new World(1_000)
    expect(world.deposit("<item/>", "bob", 5_000)).toMatchObject({ n: 1 })
    expect(world.deposit("<item/>", undefined, 700)).toMatchObject({ n: 2 })
    expect(world.deposit("<item/>", undefined, 700)).toMatchObject({ reason: "QuotaExceeded" })
    world.actor.restart()
    expect(world.counted).toBe(bytesOf("<item/>", 700))
    expect(world.deposit("<item/>", undefined, 700)).toMatchObject({ reason: "QuotaExceeded" })
    world.retrieve(1, 2)
    expect(world.deposit("<item/>", undefined, 700)).toMatchObject({ n: 3 })
  })
})

/** How many of these deposits, one after the other, write the record. */
const writesOf = (count: number): number => {
  let state = open
  let writes = 0
  for (let head = 0; head < count; head++) {
    const message = { ...deposit, digest: part(`d${head}`), idRandom: part(`r${head}`) }
    // The mailbox of these tests keeps three notifications.
    const { durable, nextState } = decide({ ...state, removed: head }, message, { head })
    if (nextState?._tag !== "Open") throw new Error("the deposit was refused")
    if (durable) writes++
    state = nextState
  }
  return writes
}
