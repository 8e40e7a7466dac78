/** Which messages of other services take receipts, as a node remembers it. */
import { expect, it } from "vitest"
import { namesReceipts,
  ReceiptAcceptance } from "../../actors/background-task/receipt-acceptance.ts"
import { receiptAcceptanceFreshMs } from "../../actors/limits.ts"

it("names the type of receipts itself, not a range of types", () => {
  expect(namesReceipts(["text/xml", "application/xml"])).toBe(true)
  for (const types of [[], ["*/*"], ["application/*"], ["application/json"]]) {
    expect(namesReceipts(types)).toBe(false)
  }
})

it("remembers an answer for a day, for each URI and password", () => {
  const acceptance = new ReceiptAcceptance()
  const open = { url: "https://sender.example/1", password: undefined }
  expect(acceptance.known(open, 1)).toBeUndefined()
  acceptance.record(open, true, 1)
  acceptance.record({ ...open, password: "secret" }, false, 1)
  expect(acceptance.known(open, receiptAcceptanceFreshMs)).toBe(true)
  expect(acceptance.known(open, receiptAcceptanceFreshMs + 1)).toBeUndefined()
  expect(acceptance.known({ ...open, password: "secret" }, 2)).toBe(false)
  expect(acceptance.known({ ...open, url: "https://sender.example/2" }, 2)).toBeUndefined()
})
