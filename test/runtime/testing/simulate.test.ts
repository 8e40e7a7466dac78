/** Simulations of small actors: well ones pass, and each planted bug is found by its report. */
import { describe, expect, it } from "vitest"
import { type ActorModel, type Invariant, simulate, SimulationFailed,
  type SimulationSummary } from "../../../runtime/testing/index.ts"
import { planted } from "../../simulation/planted.ts"
import { type Account, account, accountInDebt, type AccountMessage, accountWithMemory,
  accountWithoutKeys, forgetfulReminder, reminder } from "./actors.ts"
import { accounts, banking, remind } from "./simulations.ts"

const failureOf = async (run: Promise<SimulationSummary>): Promise<SimulationFailed> => {
  const failure: unknown = await run.then(() => undefined, (error: unknown) => error)
  if (failure instanceof SimulationFailed) return failure
  return expect.fail(`the simulation did not fail: ${String(failure)}`)
}

describe("a simulation of accounts", () => {
  it("passes by the table as the model, and counts what it did", async () => {
    const summary = await simulate({ ...banking, model: "table", seeds: 8 })
    expect(summary.seeds).toBe(8)
    expect(summary.answered).toBeGreaterThan(100)
    expect(Object.keys(summary.faults).length).toBeGreaterThan(3)
    const [coverage] = summary.coverage
    expect(coverage).toMatchObject({ kind: "account", missing: [] })
    expect(coverage?.cells).toHaveLength(3)
  })

  it("passes by a model of the user", async () => {
    const balance: ActorModel<Account, AccountMessage, unknown> = {
      initial: account.initial,
      step: (state, message, answer) => {
        const isReply = (cents: number): boolean => answer === undefined || answer.reply === cents
        if (message._tag === "Read") return isReply(state.cents) ? [state] : []
        if (message._tag === "Deposit") {
          const isRepeated = state.keys.includes(message.key)
          const cents = state.cents + (isRepeated ? 0 : message.cents)
          const keys = isRepeated ? state.keys : [...state.keys, message.key]
          return isReply(cents) ? [{ ...state, cents, keys }] : []
        }
        const cents = state.cents - message.cents
        const isRefused = answer === undefined || typeof answer.reply !== "number"
        if (cents < 0) return isRefused ? [state] : []
        return isReply(cents) ? [{ ...state, cents }] : []
      }
    }
    const { answered } = await simulate({ ...banking, model: { account: balance }, seeds: 4 })
    expect(answered).toBeGreaterThan(40)
  })

  it("finds cells that keep a state of their own", async () => {
    const { message, violations } = await failureOf(
      simulate({ ...banking, behaviors: () => [accountWithMemory()], model: "table" })
    )
    expect(violations.join("\n")).toContain("Open x Deposit of account decides twice in two ways")
    expect(message).toContain("to repeat it: simulate({ ..., seeds: [")
  })

  it("finds a state that is not stored whole, and shrinks the plan", async () => {
    const failure = await failureOf(simulate({
      ...banking,
      // Every deposit of an account has the same key, so that each one after the first is repeated.
      clients: (draw) => ({
        to: draw.pick(accounts),
        message: { _tag: "Deposit", cents: 1, key: "key" },
        attempts: 3
      }),
      behaviors: [accountWithoutKeys],
      model: "table",
      seeds: 200
    }))
    expect(failure.violations.join("\n")).toContain("is not linearizable")
    const plan = /as small as it was made \(\w+\):\n(\{.*?\n\})/s.exec(failure.message)?.[1] ?? "{}"
    const { operations } = JSON.parse(plan) as { readonly operations: ReadonlyArray<unknown> }
    expect(operations.length).toBeGreaterThan(0)
    expect(operations.length).toBeLessThan(10)
    expect(failure.message).toContain("VIOLATION")
  })

  it("finds what an invariant excludes, when it happens", async () => {
    const noDebt: Invariant = {
      name: "no debt",
      always: ({ stateOf }, changed) => {
        const { cents } = stateOf<Account>(changed)
        return cents < 0 ? `${changed.id} has ${cents}` : undefined
      }
    }
    await simulate({ ...banking, invariants: [noDebt], seeds: 2 })
    const { violations } = await failureOf(
      simulate({ ...banking, behaviors: [accountInDebt], invariants: [noDebt] })
    )
    expect(violations[0]).toMatch(/^no debt: (ann|ben) has -\d+$/)
  })

  it("finds a store without fences", async () => {
    const plant = planted["no-fence"] ?? {}
    const failure = await failureOf(simulate({ ...banking, model: "table", plant, seeds: 200 }))
    expect(failure.violations.join("\n")).toMatch(/not linearizable|which is another's/)
  })

  it("has the same course for the same seed", async () => {
    const run = () =>
      failureOf(
        simulate({
          ...banking,
          behaviors: [accountInDebt],
          model: "table",
          invariants: [{ name: "stop", atRest: () => "here" }],
          seeds: [7]
        })
      )
    const first = await run()
    expect(first.message).toContain("client-")
    expect((await run()).message).toBe(first.message)
  })

  it("refuses to run beside another one", async () => {
    const first = simulate({ ...banking, seeds: 1 })
    await expect(simulate({ ...banking, seeds: 1 })).rejects.toThrow(
      "a simulation already runs in this process"
    )
    await first
  })
})

describe("a simulation of reminders", () => {
  it("passes, whatever happens to the service that they call", async () => {
    const { answered, coverage } = await remind((host, mails) => [reminder(host, mails)], 8)
    expect(answered).toBeGreaterThan(20)
    expect(coverage[0]?.missing).not.toContain("Waiting x Due")
  })

  it("finds a reminder that does not repeat a failed attempt", async () => {
    const { violations } = await failureOf(
      remind((host, mails) => [forgetfulReminder(host, mails)], 200)
    )
    expect(violations.join("\n")).toContain("do not come to rest")
  })
})
