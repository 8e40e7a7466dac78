/** The counter on a node that crashes, and on simulated clusters with faults of every kind. */
import { simulate, startTestNode } from "@restante/runtime/testing"
import assert from "node:assert/strict"
import { test } from "node:test"
import { counter } from "../src/actors/counter.ts"

test("is counted further after a crash", async () => {
  const node = await startTestNode({ behaviors: [counter] })
  await node.ask(counter("visits"), { _tag: "Add", by: 2 })
  await node.restart()
  assert.equal(await node.ask(counter("visits"), { _tag: "Add", by: 3 }), 5)
  assert.equal(node.logOf(counter("visits")).length, 2)
  await node.stop()
})

const counters = [counter("visits"), counter("sales")]

test("counts each answered Add once, whatever crashes", async () => {
  await simulate({
    behaviors: [counter],
    clients: (draw) => ({
      to: draw.pick(counters),
      message: draw.chance(0.7) ? { _tag: "Add", by: draw.below(10) } : { _tag: "Read" }
    }),
    model: "table",
    invariants: [{
      name: "the count is the sum of the log",
      always: ({ logOf, stateOf }, changed) => {
        const { count } = stateOf<{ readonly count: number }>(changed)
        const sum = logOf(changed)
          .reduce((total, { value }) => total + counter.decodeItem(value).by, 0)
        return count === sum ? undefined : `${changed.id} is at ${count}, and its log at ${sum}`
      }
    }],
    seeds: 5
  })
})
