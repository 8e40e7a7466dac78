/** The chat room: its simulation on a few seeds, and presence over time. */
import { expect, it } from "vitest"
import { awayAfterMs, chatRoom } from "../../examples/chat-room/index.ts"
import { chatSimulation } from "../../examples/chat-room/simulation.ts"
import { simulate, startTestNode, testTable } from "../../runtime/testing/index.ts"

const kitchen = chatRoom("kitchen")

it("shows who is present, whatever happens to the nodes", async () => {
  const { answered, coverage } = await simulate({ ...chatSimulation, seeds: 5 })
  expect(answered).toBeGreaterThan(50)
  expect(coverage[0]?.missing).toEqual([])
})

it("shows nobody who has been silent for too long, also after a crash", async () => {
  await using node = await startTestNode({ behaviors: [chatRoom] })
  const who = () => node.ask(kitchen, { _tag: "Who" })
  await node.ask(kitchen, { _tag: "Enter", name: "ann" })
  await node.advance(awayAfterMs / 2)
  await node.ask(kitchen, { _tag: "Enter", name: "ben" })
  await node.restart()
  await node.advance(awayAfterMs / 2 + 1_000)
  expect(await who()).toEqual(["ben"])
  await node.advance(awayAfterMs / 2)
  expect(await who()).toEqual([])
  expect(node.timerOf(kitchen)).toBeUndefined()
})

it("takes texts of those who are present, and a repeated one once", () => {
  const tests = testTable(chatRoom)
  const say = { _tag: "Say", name: "ann", text: "Tea?", key: "k" } as const
  tests.given().when(say).then({ refuse: "NotHere" })
  tests.given(undefined, { keys: { k: 4 } }).when(say).then({ reply: 4 })
  const present = Array.from({ length: 200 }, (_, at) => ({ name: `m${at}`, seenMs: 0 }))
  tests.given({ _tag: "Open", present }).when({ _tag: "Enter", name: "ann" })
    .then({ refuse: "Full" })
  const full = tests.given({ _tag: "Open", present }, { head: 1_000 })
  const { parts } = full.when({ ...say, name: "m7" })
  expect(parts).toMatchObject({ removeItems: [1], reply: 1_001 })
})
