/** The checker: by known histories of a register, and against every order of small ones. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { check, expectLinearizable,
  type HistoryOperation as Operation } from "../../runtime/testing/index.ts"
import { isExplained } from "./brute-force.ts"
import { cabinets, type Domain, mailboxes, notifications, registers, registrations,
  sessions } from "./domains.ts"
import { history } from "./histories.ts"
import { register, type RegisterInput, type RegisterOutput } from "./models/register.ts"

const { fail, info, ok } = history<RegisterInput, RegisterOutput>()
const write = (value: number): RegisterInput => ({ kind: "write", value })
const exchange = (from: number, to: number): RegisterInput => ({ kind: "exchange", from, to })
const read: RegisterInput = { kind: "read" }

const isLinearizable = (operations: ReadonlyArray<ReturnType<typeof ok>>) =>
  check(register, operations)._tag === "Linearizable"

describe("a register", () => {
  it.each([
    ["nothing", []],
    ["one after the other", [ok(0, 1, write(1)), ok(2, 3, read, 1)]],
    ["at the same time, the old value", [ok(0, 9, write(1)), ok(2, 3, read, 0)]],
    ["at the same time, the new value", [ok(0, 9, write(1)), ok(2, 3, read, 1)]],
    ["an end that is another's start", [ok(0, 1, write(1)), ok(1, 2, read, 0)]],
    ["a lost answer that took effect", [info(0, write(1)), ok(5, 6, read, 1)]],
    ["one that had none", [info(0, write(1)), ok(5, 6, read, 0)]],
    ["one that has it late", [
      info(0, write(1)),
      ok(1, 2, write(2)),
      ok(3, 4, read, 2),
      ok(5, 6, read, 1)
    ]],
    ["a refused write", [fail(0, 1, write(1)), ok(2, 3, read, 0)]],
    ["an exchange that a lost one made possible", [
      info(0, exchange(0, 1)),
      ok(2, 3, exchange(1, 2), 1),
      ok(4, 5, read, 2)
    ]]
  ])("may do this: %s", (_, operations) => {
    expect(isLinearizable(operations)).toBe(true)
  })

  it.each([
    ["a stale read", [ok(0, 1, write(1)), ok(2, 3, write(2)), ok(4, 5, read, 1)]],
    ["a lost write", [ok(0, 1, write(1)), ok(2, 3, read, 0)]],
    ["a value never written", [ok(0, 1, write(1)), ok(2, 3, read, 7)]],
    ["a refused write that is seen", [fail(0, 1, write(1)), ok(2, 3, read, 1)]],
    ["the new value, and then the old one", [
      ok(0, 9, write(1)),
      ok(1, 2, read, 1),
      ok(3, 4, read, 0)
    ]],
    ["a lost answer's effect before its start", [ok(0, 1, read, 1), info(2, write(1))]],
    ["a lost answer's effect twice", [
      info(0, write(1)),
      ok(1, 2, read, 1),
      ok(3, 4, write(2)),
      ok(5, 6, read, 1)
    ]],
    ["two exchanges of one value", [
      ok(0, 9, exchange(0, 1), 1),
      ok(0, 9, exchange(0, 2), 1)
    ]],
    ["two readers who saw two writes in two orders", [
      ok(0, 9, write(1)),
      ok(0, 9, write(2)),
      ok(10, 11, read, 1),
      ok(12, 13, read, 2)
    ]]
  ])("may not do this: %s", (_, operations) => {
    expect(isLinearizable(operations)).toBe(false)
  })
})

describe("the checker", () => {
  it("tells of the first that nothing explains, with the resource", () => {
    const operations = [ok(0, 1, write(1)), ok(2, 3, read, 1), ok(4, 5, read, 0)]
    expect(() => expectLinearizable("register", register, operations)).toThrow(
      /register r is not linearizable.*after 2 of 3 operations.*none of these.*\[4, 5\] c r/s
    )
  })

  it("takes each resource by itself", () => {
    const other = { ...ok(2, 3, read, 0), resource: "other" }
    expectLinearizable("register", register, [ok(0, 1, write(1)), other])
  })

  it("says when it gave up, and takes that for a failure", () => {
    const writes = Array.from({ length: 12 }, (_, n) => ok(0, 99, write(n)))
    const operations = [...writes, ok(100, 101, read, 77)]
    expect(check(register, operations, 1_000)._tag).toBe("GaveUp")
    expect(() => expectLinearizable("register", register, operations, 1_000)).toThrow(
      "was not settled in time"
    )
    expect(check(register, operations)._tag).toBe("Broken")
  })

  it("settles long histories with many lost answers in few steps", () => {
    const operations = Array.from({ length: 2_000 }, (_, n) => [
      n % 5 === 0 ? info(n * 10, write(-n)) : ok(n * 10, n * 10 + 15, write(n)),
      ok(n * 10 + 16, n * 10 + 19, read, n % 5 === 0 ? (n % 10 === 0 ? -n : n - 1) : n)
    ]).flat().slice(2)
    const verdict = check(register, [ok(-5, -4, write(1)), ...operations])
    expect(verdict._tag).toBe("Linearizable")
  })
})

/** Random numbers by which one operation is chosen. */
const choice = fc.record({
  input: fc.nat(),
  output: fc.nat(),
  before: fc.nat(8),
  after: fc.nat(8),
  outcome: fc.constantFrom("ok" as const, "ok" as const, "ok" as const, "info" as const),
  isSpoiled: fc.integer({ min: 0, max: 9 }).map((n) => n === 0)
})

/** A history that mostly happened: what was answered comes of a run, unless it is spoiled. */
const happened = <State, Input extends { readonly kind: string }, Output>(
  { inputs, model, outputs }: Domain<State, Input, Output>,
  choices: ReadonlyArray<typeof choice extends fc.Arbitrary<infer Choice> ? Choice : never>
): ReadonlyArray<Operation<Input, Output>> => {
  const { info, ok } = history<Input, Output>()
  let state = model.initial
  return choices.flatMap(({ after, before, input: i, isSpoiled, outcome, output: o }, n) => {
    const input = inputs[i % inputs.length]
    if (input === undefined) return []
    const possible = outputs.filter((output) => model.step(state, input, output).length > 0)
    const chosen = isSpoiled || possible.length === 0 ? outputs : possible
    const output = chosen[o % chosen.length]
    const [next] = model.step(state, input, output)
    // An answer that is lost may be that of something that was not done.
    if (next !== undefined && (outcome === "ok" || i % 3 > 0)) state = next
    const start = n * 4 - before
    return [outcome === "ok" ? ok(start, n * 4 + after, input, output) : info(start, input)]
  })
}

const compared = async <State, Input extends { readonly kind: string }, Output>(
  domain: Domain<State, Input, Output>
): Promise<void> => {
  const count = { linearizable: 0, broken: 0 }
  await fc.assert(
    fc.asyncProperty(fc.array(choice, { minLength: 1, maxLength: 6 }), async (choices) => {
      const operations = happened(domain, choices)
      const isLinear = check(domain.model, operations)._tag === "Linearizable"
      count[isLinear ? "linearizable" : "broken"] += 1
      expect(isLinear).toBe(isExplained(domain.model, operations))
    }),
    { numRuns: 2_000 }
  )
  // Both kinds were there, or nothing has been compared.
  expect(Math.min(count.linearizable, count.broken)).toBeGreaterThan(100)
}

describe("against every order of a small history", () => {
  it("says the same of registers", () => compared(registers))
  it("says the same of mailboxes", () => compared(mailboxes))
  it("says the same of sessions", () => compared(sessions))
  it("says the same of notifications", () => compared(notifications))
  it("says the same of registrations", () => compared(registrations))
  it("says the same of cabinets", () => compared(cabinets))
})
