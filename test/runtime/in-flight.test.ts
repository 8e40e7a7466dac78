/** What is in flight: as a Map of tokens, whatever comes and goes in which order. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { InFlight } from "../../runtime/in-flight/index.ts"

interface Message {
  readonly n: number
}

/** Adds a message, or ends one of those in flight. */
const step = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ _tag: "Add" } as const) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("End" as const), at: fc.nat(1_000) }) }
)

describe("values in flight", () => {
  it("are found by their tokens until they end", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 2_000, size: "max" }), (steps) => {
        const inFlight = new InFlight<Message>()
        const model = new Map<string, Message>()
        const ended: Array<string> = []
        for (const one of steps) {
          if (one._tag === "Add") {
            const message = { n: model.size }
            const token = inFlight.add(message)
            expect(model.has(token) || ended.includes(token)).toBe(false)
            model.set(token, message)
            continue
          }
          const token = [...model.keys()][one.at % Math.max(model.size, 1)]
          if (token === undefined) continue
          inFlight.delete(token)
          model.delete(token)
          ended.push(token)
        }
        expect(inFlight.size).toBe(model.size)
        expect([...inFlight]).toEqual([...model])
        for (const [token, message] of model) expect(inFlight.get(token)).toBe(message)
        for (const token of ended) expect(inFlight.get(token)).toBeUndefined()
      }),
      { numRuns: 50 }
    )
  })

  it("keep their places while thousands come and go", () => {
    const inFlight = new InFlight<Message>()
    const kept = Array.from({ length: 100 }, (_, n) => ({ n, token: inFlight.add({ n }) }))
    const tokens = new Set(kept.map(({ token }) => token))
    for (let n = 0; n < 10_000; n++) {
      const token = inFlight.add({ n })
      expect(tokens.has(token)).toBe(false)
      tokens.add(token)
      inFlight.delete(token)
    }
    expect(inFlight.size).toBe(100)
    for (const { n, token } of kept) expect(inFlight.get(token)?.n).toBe(n)
  })

  it("end together, and those that end meanwhile are not visited", () => {
    const inFlight = new InFlight<Message>()
    const [first, second, third] = [0, 1, 2].map((n) => inFlight.add({ n }))
    const visited: Array<string> = []
    for (const [token] of inFlight) {
      visited.push(token)
      if (token === first) inFlight.delete(second ?? "")
    }
    expect(visited).toEqual([first, third])
    expect(inFlight.clear()).toEqual([{ n: 0 }, { n: 2 }])
    expect(inFlight.size).toBe(0)
    expect(inFlight.get(third ?? "")).toBeUndefined()
    expect([first, second, third]).not.toContain(inFlight.add({ n: 3 }))
  })

  it.each(["", "-", "_0", "-1", "zzzzzzzzzzzzzzzzzzzz"])("have no token %j", (token) => {
    const inFlight = new InFlight<Message>()
    inFlight.add({ n: 0 })
    expect(inFlight.get(token)).toBeUndefined()
    expect(inFlight.delete(token)).toBe(false)
    expect(inFlight.size).toBe(1)
  })
})
