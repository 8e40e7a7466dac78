/**
 * A node with its embedded store under load is killed, paused, or gets a wrong clock. The responses
 * to all clients never contradict each other. The long form chooses random faults.
 */
import { afterAll, expect, it } from "vitest"
import { cleanUp } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { Alone, runAlone } from "./alone.ts"
import { chosen } from "./fault.ts"
import { seed } from "./form.ts"
import { Tally } from "./tally.ts"

const testMs = 400_000
const kills = (count: number) => Array.from({ length: count }, () => "killed")
const names = {
  rocksdb: [
    ...kills(3),
    "diesOnTheWay",
    "killedAtItsStart",
    "still",
    "clockForward",
    ...kills(3),
    "clockBack",
    "diesOnTheWay",
    "stopped",
    ...kills(2),
    "killedAtItsStart"
  ],
  leveldb: [...kills(2), "diesOnTheWay", "killedAtItsStart", "stopped", "killed"]
} as const

afterAll(() => {
  closeReceivers()
  cleanUp()
})

it.each(["rocksdb", "leveldb"] as const)(
  "contradicts nothing that it has ever answered, on %s",
  async (store) => {
    const tally = new Tally(`embedded-${store}`, seed)
    const alone = await Alone.start(store)
    await runAlone({ alone, seed, tally, choices: chosen(alone.faults, names[store]) })
    expect(tally.struck).toBe(names[store].length)
  },
  testMs
)
