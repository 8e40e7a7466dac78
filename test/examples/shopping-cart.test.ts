/** The shopping cart: its simulation on a few seeds, and a crash in the middle of a payment. */
import { expect, it } from "vitest"
import { type OrderCall, type Services, shoppingCart } from "../../examples/shopping-cart/index.ts"
import { cartSimulation } from "../../examples/shopping-cart/simulation.ts"
import { simulate, startTestNode, testTable } from "../../runtime/testing/index.ts"

it("ends each order shipped or undone, whatever happens to nodes and services", async () => {
  const { answered, coverage } = await simulate({ ...cartSimulation, seeds: 5 })
  expect(answered).toBeGreaterThan(50)
  expect(coverage[0]?.missing).not.toContain("Ordering x Answered")
})

const services = (called: Array<string>, charge: Services["charge"]): Services => {
  const done = (what: string) => async ({ cart }: OrderCall) => {
    called.push(`${what} ${cart}`)
    return true
  }
  return {
    reserve: done("reserve"),
    charge: (call) => {
      called.push(call.key)
      return charge(call)
    },
    ship: done("ship"),
    refund: done("refund"),
    release: done("release")
  }
}

const tea = { _tag: "Put", sku: "tea", count: 1, cents: 5 } as const

it("repeats a payment without an answer with the same key, on the next node", async () => {
  const called: Array<string> = []
  // The first call never ends: its node crashes.
  const carts = shoppingCart(
    services(called, () =>
      called.filter((one) => one === "a/charge").length > 1
        ? Promise.resolve(true)
        : new Promise(() => {}))
  )
  await using node = await startTestNode({ behaviors: [carts] })
  const cart = carts("a")
  await node.ask(cart, tea)
  expect(await node.ask(cart, { _tag: "Order" })).toBe("ordering")
  await node.advance(100)
  expect(called).toEqual(["reserve a", "a/charge"])
  await node.restart()
  await node.advance(100)
  expect(called.slice(2)).toEqual(["a/charge", "ship a"])
  expect(await node.ask(cart, { _tag: "Look" })).toBe("shipped")
  expect(node.timerOf(cart)).toBeUndefined()
})

it("refuses what is no order, and ignores the answer to an earlier attempt", () => {
  const tests = testTable(shoppingCart(services([], async () => true)))
  const line = { sku: "tea", count: 1, cents: 5 }
  const order = { lines: [line], cents: 5 }
  const answered = { _tag: "Answered", step: "reserve", isDone: true } as const
  tests.given().when({ _tag: "Order" }).then({ refuse: "Empty" })
  tests.given().when({ ...tea, count: -1 }).then({ refuse: "Negative" })
  tests.given({ _tag: "Shopping", lines: [line] }).when({ ...tea, count: 0 })
    .then({ become: { _tag: "Shopping", lines: [] }, reply: "shopping" })
  tests.given().when(answered).then({})
  tests.given({ _tag: "Ordering", ...order, step: "ship" }).when(answered).then({})
  tests.given({ _tag: "Ordering", ...order, step: "ship" }).when(tea).then({ refuse: "Ordered" })
  tests.given({ _tag: "Closed", ...order, outcome: "shipped" }).when(answered).then({})
  tests.given({ _tag: "Closed", ...order, outcome: "shipped" }).when({ _tag: "Order" })
    .then({ reply: "shipped" })
})
