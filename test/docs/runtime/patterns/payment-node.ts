/** A test of one payment on a node that crashes. */
import { startTestNode } from "../../../../runtime/testing/index.ts"
import { payment } from "./payment.ts"

/** The keys of the calls that the bank received: one before the crash, and one after it. */
export const payAndCrash = async (): Promise<ReadonlyArray<string>> => {
  const keys: Array<string> = []
  const bank = (key: string): Promise<string> => {
    keys.push(key)
    // The first call never returns.
    return keys.length === 1 ? new Promise(() => {}) : Promise.resolve("receipt-1")
  }
  const node = await startTestNode({ behaviors: [payment(bank)] })
  const order = { kind: "payment", id: "order-1" }
  await node.ask(order, { _tag: "Pay", cents: 500 })
  await node.restart()
  await node.advance(100)
  const state = await node.ask<string>(order, { _tag: "Look" })
  await node.stop()
  return [...keys, state] // ["order-1", "order-1", "paid"]
}
