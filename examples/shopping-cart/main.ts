/** Orders tea; the answer of the first payment is lost. */
import { memory, startNode } from "@restante/runtime"
import { type OrderCall, shoppingCart } from "./index.ts"

const done = (what: string) => async ({ cart, cents }: OrderCall): Promise<boolean> => {
  console.log(`${what} ${cart}: ${cents} cents`)
  return true
}

/** A payment provider that knows keys: it charges once, though it is called twice. */
const paymentProvider = () => {
  const paid = new Set<string>()
  return async ({ cart, cents, key }: OrderCall): Promise<boolean> => {
    const isNew = !paid.has(key)
    console.log(isNew ? `charge ${cart}: ${cents} cents` : `charge ${cart}: known`)
    paid.add(key)
    if (isNew) throw new Error("the connection is lost")
    return true
  }
}

const carts = shoppingCart({
  reserve: done("reserve"),
  charge: paymentProvider(),
  ship: done("ship"),
  refund: done("refund"),
  release: done("release")
})
const node = await startNode({ actors: [carts], store: memory() })
const cart = carts("cart-1")
await node.ask(cart, { _tag: "Put", sku: "tea", count: 2, cents: 350 })
await node.ask(cart, { _tag: "Order" })
const look = () => node.ask(cart, { _tag: "Look" })
while (await look() === "ordering") await new Promise((resolve) => setTimeout(resolve, 500))
console.log(await look())
await node.stop()
