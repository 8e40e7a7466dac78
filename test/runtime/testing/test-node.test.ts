/** A node for tests: its time, what is stored, passivation, and crashes. */
import { afterEach, describe, expect, it } from "vitest"
import { address } from "../../../runtime/index.ts"
import { epochMs, startTestNode, type TestNode,
  type TestNodeOptions } from "../../../runtime/testing/index.ts"
import { account, type Reminder, slowReminder } from "./actors.ts"

const running: Array<TestNode> = []

const start = async (options: TestNodeOptions): Promise<TestNode> => {
  const node = await startTestNode(options)
  running.push(node)
  return node
}

afterEach(async () => {
  for (const node of running.splice(0)) await node.stop()
})

const alice = address("account", "alice")
const tea = address("reminder", "tea")
const deposit = (cents: number, key: string) => ({ _tag: "Deposit", cents, key })

describe("a test node", () => {
  it("answers, and shows what is stored", async () => {
    const node = await start({ behaviors: [account] })
    expect(node.stateOf(alice)).toEqual(account.initial)
    expect(await node.ask<number>(alice, deposit(5, "a"))).toBe(5)
    expect(await node.ask<number>(alice, deposit(5, "a"))).toBe(5)
    expect(node.stateOf(alice)).toEqual({ _tag: "Open", cents: 5, keys: ["a"] })
    expect(await node.ask(alice, { _tag: "Withdraw", cents: 6 }))
      .toMatchObject({ _tag: "Refused", reason: "TooLittle" })
    await expect(node.ask(alice, { _tag: "Steal" })).rejects.toMatchObject({
      _tag: "UnknownMessage"
    })
    expect(node.logOf(alice)).toEqual([])
    expect(node.faults).toEqual([])
  })

  it("passivates an actor, which its next message loads", async () => {
    const decoded: Array<string> = []
    const behavior: typeof account = {
      ...account,
      decode: (text) => {
        decoded.push(text)
        return JSON.parse(text) as ReturnType<typeof account.decode> // written by encode
      }
    }
    const node = await start({ behaviors: [behavior] })
    await node.ask(alice, deposit(3, "a"))
    await node.ask(alice, { _tag: "Read" })
    expect(decoded).toEqual([])
    await node.passivate(alice)
    await expect(node.passivate(alice)).rejects.toThrow("account/alice cannot be passivated")
    expect(await node.ask<number>(alice, { _tag: "Read" })).toBe(3)
    expect(decoded).toHaveLength(1)
  })

  it("fires timers when the test advances its time", async () => {
    const sent: Array<string> = []
    const node = await start({ behaviors: [slowReminder(sent, 500)] })
    expect(node.nowMs).toBe(epochMs)
    const hourMs = 3_600_000
    expect(await node.ask(tea, { _tag: "Remind", text: "tea", inMs: hourMs })).toBe("later")
    expect(node.timerOf(tea)).toBe(epochMs + hourMs)
    await node.advance(hourMs - 1_000)
    expect(sent).toEqual([])
    await node.advance(1_100)
    expect(node.stateOf<Reminder>(tea)._tag).toBe("Waiting")
    expect(sent).toEqual([])
    await node.advance(500)
    expect(sent).toEqual(["tea"])
    expect(node.stateOf(tea)).toEqual({ _tag: "Idle" })
    expect(node.timerOf(tea)).toBeUndefined()
    expect(node.nowMs).toBe(epochMs + hourMs + 600)
  })

  it("has a time of its own", async () => {
    const one = await start({ behaviors: [slowReminder([], 1)] })
    const other = await start({ behaviors: [slowReminder([], 1)], nowMs: 1_000 })
    for (const node of [one, other]) await node.ask(tea, { _tag: "Remind", text: "tea", inMs: 9 })
    await one.advance(1_000)
    expect(one.stateOf(tea)).toEqual({ _tag: "Idle" })
    expect(other.stateOf(tea)).toEqual({ _tag: "Waiting", text: "tea", atMs: 1_009 })
    expect(other.nowMs).toBe(1_000)
  })

  it("loses what is in memory in a crash, and goes on by what is stored", async () => {
    const sent: Array<string> = []
    const node = await start({ behaviors: [account, slowReminder(sent, 500)] })
    await node.ask(alice, deposit(7, "a"))
    await node.ask(tea, { _tag: "Remind", text: "tea", inMs: 1_000 })
    // The attempt has begun, and ends with the process.
    await node.advance(1_200)
    await node.restart()
    expect(sent).toEqual([])
    expect(await node.ask<number>(alice, { _tag: "Read" })).toBe(7)
    await node.advance(25_000)
    expect(sent).toEqual(["tea"])
    expect(node.stateOf(tea)).toEqual({ _tag: "Idle" })
  })

  it("reports the faults of actors", async () => {
    const broken: typeof account = {
      ...account,
      table: {
        Open: {
          ...account.table.Open,
          Read: () => {
            throw new Error("as planted")
          }
        }
      }
    }
    const node = await start({ behaviors: [broken] })
    await expect(node.ask(alice, { _tag: "Read" })).rejects.toMatchObject({ _tag: "ActorDefect" })
    expect(node.faults.join("\n")).toContain("as planted")
  })
})
