/** The blocks of docs/runtime/patterns.md are the files of `patterns/`, verbatim, and they run. */
import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { isRefusal, memory, startNode } from "../../../runtime/main.ts"
import { startTestNode } from "../../../runtime/testing/index.ts"
import { blocksOf } from "../pages.ts"
import { codeOf } from "./package-imports.ts"
import { account } from "./patterns/account.ts"
import { heartbeat } from "./patterns/heartbeat.ts"
import { inbox, newsletter } from "./patterns/newsletter.ts"
import { payAndCrash } from "./patterns/payment-node.ts"
import { simulatePayments } from "./patterns/payment-simulation.ts"
import { testPayment } from "./patterns/payment-table.ts"
import { type Agency, trip } from "./patterns/trip.ts"

const page = "docs/runtime/patterns.md"
const files = readdirSync(new URL("patterns", import.meta.url)).sort()
const shown = blocksOf(page).filter(({ language }) => language === "ts")

describe("the page", () => {
  it("has the files, and no other block", () => {
    expect(shown.map(({ mark }) => mark?.text).toSorted()).toEqual(files)
  })

  it.each(files)("shows patterns/%s as it is", (file) => {
    const text = codeOf(readFileSync(new URL(`patterns/${file}`, import.meta.url), "utf8"))
    expect(shown.find(({ mark }) => mark?.text === file)?.text).toBe(text)
  })
})

describe("a payment", () => {
  it("has its decisions tested one by one", () => {
    expect(testPayment()).toMatch(/^payment: 2 of 12 cells/)
  })

  it("is charged again with the same key after a crash", async () => {
    expect(await payAndCrash()).toEqual(["order-1", "order-1", "paid"])
  })

  it("is charged once on clusters that crash", async () => {
    const { answered, coverage: [cells], faults, seeds } = await simulatePayments(3)
    expect(seeds).toBe(3)
    expect(answered).toBeGreaterThan(20)
    expect(Object.keys(faults).length).toBeGreaterThan(0)
    expect(cells?.text).toMatch(/payment: \d+ of 12 cells/)
  })
})

describe("a trip", () => {
  /** Books a trip with an agency that crashes the node once; the calls, and the outcome. */
  const booked = async (left: Agency["reserve"]): Promise<ReadonlyArray<string>> => {
    const calls: Array<string> = []
    let hangs = true
    const agency: Agency = {
      reserve: (part, key) => {
        calls.push(`reserve ${part} ${key}`)
        if (part === "flight" || !hangs) return left(part, key)
        hangs = false
        return new Promise(() => {})
      },
      cancel: async (part, key) => void calls.push(`cancel ${part} ${key}`)
    }
    const node = await startTestNode({ behaviors: [trip(agency)] })
    const rome = trip(agency)("rome")
    await node.ask(rome, { _tag: "Book" })
    await node.advance(100)
    await node.restart()
    await node.advance(100)
    const outcome = await node.ask<string>(rome, { _tag: "Look" })
    expect(node.timerOf(rome)).toBeUndefined()
    await node.stop()
    return [...calls, outcome]
  }

  it("has both parts, over a crash", async () => {
    expect(await booked(async () => true)).toEqual([
      "reserve flight rome",
      "reserve hotel rome",
      "reserve hotel rome",
      "booked"
    ])
  })

  it("cancels the flight where there is no hotel", async () => {
    const calls = await booked(async (part) => part === "flight")
    expect(calls.slice(-2)).toEqual(["cancel flight rome", "failed"])
  })

  it("asks for no hotel where there is no flight", async () => {
    expect(await booked(async () => false)).toEqual(["reserve flight rome", "failed"])
  })
})

describe("a newsletter", () => {
  it("reaches each inbox once, also when it is delivered again", async () => {
    const node = await startTestNode({ behaviors: [newsletter, inbox] })
    const to = Array.from({ length: 120 }, (_, at) => `reader-${at}`)
    // One inbox has it already, as after a batch of which the answer was lost.
    await node.ask(inbox("reader-60"), { _tag: "Deliver", key: "may", text: "Hello" })
    await node.ask(newsletter("may"), { _tag: "Send", text: "Hello", to })
    await node.advance(1_000)
    expect(await node.ask(newsletter("may"), { _tag: "Look" })).toBe("all")
    for (const id of to) expect(await node.ask(inbox(id), { _tag: "Count" })).toBe(1)
    expect(node.logOf(inbox("reader-60"))).toHaveLength(1)
    expect(isRefusal(await node.ask(newsletter("may"), { _tag: "Send", text: "", to }))).toBe(true)
    await node.stop()
  })
})

describe("the versions of an account", () => {
  it("migrate forward and back", async () => {
    const store = memory()
    for (const [writes, cents] of [[1, 5], [2, 10], [1, 15]] as const) {
      const node = await startNode({ actors: [account(writes)], store })
      expect(await node.ask(account(writes)("ann"), { _tag: "Pay", cents: 5 })).toBe(cents)
      await node.stop()
    }
  })
})

describe("a heartbeat", () => {
  it("notices silence, and skips the ticks of a pause", async () => {
    const node = await startTestNode({ behaviors: [heartbeat] })
    const lamp = heartbeat("lamp")
    await node.ask(lamp, { _tag: "Beat" })
    await node.advance(60_000)
    await node.ask(lamp, { _tag: "Beat" })
    await node.advance(60_000)
    expect(await node.ask(lamp, { _tag: "Look" })).toBe("alive")
    await node.advance(120_000)
    expect(await node.ask(lamp, { _tag: "Look" })).toBe("silent")
    await node.stop()
  })
})
