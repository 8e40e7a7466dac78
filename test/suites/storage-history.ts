/** The storage contract for random histories of one actor's log, compared with a list. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { address } from "../../runtime/actor/address.ts"
import type { LogItem } from "../../runtime/actor/behavior.ts"
import { type Probe, revisionOf } from "./storage-probe.ts"

const numbersMax = 1_300
const missingNumber = 1_000_000

type Step =
  | { readonly _tag: "Append"; readonly values: ReadonlyArray<string>; readonly writes: boolean }
  | { readonly _tag: "Remove"; readonly at: ReadonlyArray<number>; readonly values: Array<string> }
  | { readonly _tag: "Skip"; readonly values: ReadonlyArray<string> }
  | { readonly _tag: "Read"; readonly from: number; readonly limit: number }
  | { readonly _tag: "Reopen" }

const value = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom("", "\n", "\r\n", "5,-", "é\n🐎", "x".repeat(70_000), "ž".repeat(9_000))
)
const values = fc.array(value, { minLength: 1, maxLength: 40 })
// More than one atomic batch takes.
const many = fc.integer({ min: 1_010, max: 1_030 })
  .map((count) => Array.from({ length: count }, (_, at) => `${at}`))

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ values, writes: fc.boolean() }).map(append) },
  { weight: 1, arbitrary: fc.record({ values: many, writes: fc.boolean() }).map(append) },
  {
    weight: 4,
    arbitrary: fc.record({
      at: fc.array(fc.nat(numbersMax), { minLength: 1, maxLength: 30 }),
      values: fc.array(value, { maxLength: 3 })
    }).map((of): Step => ({ _tag: "Remove", ...of }))
  },
  { weight: 1, arbitrary: values.map((of): Step => ({ _tag: "Skip", values: of })) },
  {
    weight: 4,
    arbitrary: fc.record({
      from: fc.nat(numbersMax),
      limit: fc.oneof(fc.nat(40), fc.constant(2_000))
    }).map((of): Step => ({ _tag: "Read", ...of }))
  },
  { weight: 2, arbitrary: fc.constant<Step>({ _tag: "Reopen" }) }
)

function append(of: { values: ReadonlyArray<string>; writes: boolean }): Step {
  return { _tag: "Append", ...of }
}

/** The expected actor, compared with the store's. */
class History {
  private readonly probe: Probe
  private readonly of: ReturnType<typeof address>
  private items: ReadonlyArray<LogItem> = []
  private head = 0
  private revision = 0

  constructor(probe: Probe, id: string) {
    this.probe = probe
    this.of = address("mailbox", id)
  }

  private async commit(
    appended: ReadonlyArray<string>,
    removed: ReadonlyArray<number>,
    writes: boolean
  ): Promise<void> {
    const added = appended.map((text, at): LogItem => ({ n: this.head + 1 + at, value: text }))
    this.head += added.length
    const outcome = await this.probe.one({
      address: this.of,
      expected: this.revision,
      state: writes ? `at ${this.head}` : undefined,
      head: this.head,
      append: added,
      remove: removed
    })
    this.revision = revisionOf(outcome)
    this.items = [...this.items, ...added].filter(({ n }) => !removed.includes(n))
  }

  async apply(next: Step): Promise<void> {
    if (next._tag === "Append") return this.commit(next.values, [], next.writes)
    if (next._tag === "Remove") {
      const count = this.items.length
      const numbers = next.at.map((at) => this.items[at % Math.max(1, count)]?.n ?? missingNumber)
      return this.commit(next.values, [...new Set(numbers)], true)
    }
    if (next._tag === "Skip") {
      // Items that one commit creates and removes: their numbers remain used.
      this.head += next.values.length
      return this.commit([], [], true)
    }
    if (next._tag === "Reopen") await this.probe.reopen()
    const { from, limit } = next._tag === "Read" ? next : { from: 1, limit: 5_000 }
    expect(await this.probe.read(from, limit, this.of))
      .toEqual(this.items.filter(({ n }) => n >= from).slice(0, limit))
    if (next._tag === "Read") return
    expect(await this.probe.load(this.of)).toMatchObject({
      revision: this.revision,
      head: this.head
    })
  }
}

let histories = 0

export const historyCases = (probe: Probe): void => {
  describe("a log with a history", () => {
    it("contains the appended items without the removed ones, at every read", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
          const history = new History(probe, `history${histories++}`)
          for (const one of [...steps, { _tag: "Reopen" } as const]) await history.apply(one)
        }),
        { numRuns: 15 }
      )
    })
  })
}
