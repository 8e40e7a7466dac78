import { describe, expect, it } from "vitest"
import { readiness, readinessAddress } from "../../actors/readiness/actor.ts"
import { readinessTable as table } from "../../actors/readiness/decide.ts"
import type { ReadinessMessage, ReadinessReply,
  ReadinessState } from "../../actors/readiness/protocol.ts"
import { shardOf, SHARDS } from "../../runtime/index.ts"
import { decider, effectsOf, testCells } from "./cells.ts"

const decide = decider<ReadinessState, ReadinessMessage, ReadinessReply>(table)
const { initial } = readiness

describe("the table of the readiness check", () => {
  testCells(table, {
    "Checked.Check": () => {
      const first = decide(initial, { _tag: "Check" })
      expect(first.answer).toEqual({ _tag: "Committed", n: 1 })
      expect([first.durable, effectsOf(first)])
        .toEqual([true, { nextState: initial, items: ["checked"] }])
      const later = decide(initial, { _tag: "Check" }, { head: 7 })
      expect(later.answer).toEqual({ _tag: "Committed", n: 8 })
      expect(effectsOf(later)).toEqual({ nextState: initial, items: ["checked"], removals: [7] })
    },
    "Checked.TimerFired": () =>
      expect(effectsOf(decide(initial, { _tag: "TimerFired" }))).toBeUndefined()
  })
})

it("has one check in each shard", () => {
  for (let shard = 0; shard < SHARDS; shard++) {
    expect(shardOf(readinessAddress(shard))).toBe(shard)
  }
})
