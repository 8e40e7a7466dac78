/** The harness of one table: decisions that are expected, others, and the coverage of cells. */
import { describe, expect, it } from "vitest"
import { become, refuse } from "../../../runtime/index.ts"
import { testTable, UnexpectedDecision } from "../../../runtime/testing/index.ts"
import { type Account, account, attemptMs, slowReminder } from "./actors.ts"

const rich: Account = { _tag: "Open", cents: 9, keys: ["a"] }

describe("the test of a table", () => {
  it("accepts the decision that was made", () => {
    const table = testTable(account)
    table.given().when({ _tag: "Deposit", cents: 2, key: "a" })
      .then(become<Account>({ _tag: "Open", cents: 2, keys: ["a"] }).reply(2))
    table.given(rich).when({ _tag: "Deposit", cents: 2, key: "a" }).then({ reply: 9 })
    table.given(rich).when({ _tag: "Withdraw", cents: 10 }).then(refuse("TooLittle"))
    table.given(rich).when({ _tag: "Withdraw", cents: 10 }).then({ refuse: "TooLittle" })
  })

  it("takes the context of the cell", () => {
    const table = testTable(slowReminder([], 1))
    const waiting = { _tag: "Waiting", text: "tea", atMs: 1_000 } as const
    table.given(waiting, { nowMs: 999 }).when({ _tag: "Due" }).then({ setTimer: 1_000 })
    table.given(waiting, { nowMs: 1_000 }).when({ _tag: "Due" }).then({
      setTimer: 1_000 + attemptMs,
      perform: [{ _tag: "Send", text: "tea" }]
    })
  })

  it("calls the cell of the timer", () => {
    const table = testTable(slowReminder([], 1))
    const waiting = { _tag: "Waiting", text: "tea", atMs: 1_000 } as const
    table.given(waiting, { nowMs: 999 }).tick().then({ setTimer: 1_000 })
    table.given(waiting).tick({ dueMs: 1_000 }).then({
      setTimer: 1_000 + attemptMs,
      perform: [{ _tag: "Send", text: "tea" }]
    })
    expect(table.coverage().missing).not.toContain("Waiting x Due")
  })

  it.each([
    ["another reply", { reply: 8 }],
    ["a part that is absent", { reply: 9, setTimer: 1 }],
    ["no part", {}]
  ])("rejects %s", (_, expected) => {
    const decided = testTable({ behavior: account }).given(rich).when({ _tag: "Read" })
    expect(() => decided.then(expected)).toThrow(UnexpectedDecision)
    expect(() => decided.then(expected)).toThrow("account: Open x Read decides\n  reply 9\nand not")
  })

  it("rejects a message without a cell, and a cell without a decision", () => {
    // A program in JavaScript can make both mistakes.
    const mistaken = { ...account, table: { Open: { Read: () => 1 } } } as unknown as typeof account
    const { given } = testTable(mistaken)
    expect(() => given().when({ _tag: "Withdraw", cents: 1 })).toThrow(
      "account: Open x Withdraw is not in the table"
    )
    expect(() => given().when({ _tag: "Read" })).toThrow("account: Open x Read made no decision")
  })

  it("reports the cells that were not decided", () => {
    const table = testTable(account)
    table.given().when({ _tag: "Read" }).then({ reply: 0 })
    table.given(rich).when({ _tag: "Read" }).then({ reply: 9 })
    const { cells, missing, text } = table.coverage()
    expect(cells).toContainEqual({ state: "Open", message: "Read", count: 2 })
    expect(missing).toEqual(["Open x Deposit", "Open x Withdraw"])
    expect(text).toBe(
      "account: 1 of 3 cells\n  Open x Deposit was never decided\n" +
        "  Open x Withdraw was never decided"
    )
  })
})
