/** Orders tea and a cup; the answer of the first payment is lost. */
import { memory, startNode } from "@restante/runtime"
import { type Call, shoppingCart } from "./index.ts"

const paid = new Set<string>()

const done = (what: string) => async ({ cart, cents }: Call): Promise<boolean> => {
  console.log(`${what} ${cart}: ${cents} cents`)
  return true
}

/** A payment provider that knows keys: it charges once, though it is called twice. */
const charge = async ({ cart, cents, key }: Call): Promise<boolean> => {
  const isNew = !paid.has(key)
  paid.add(key)
  console.log(isNew ? `charge ${cart}: ${cents} cents` : `charge ${cart}: known`)
  if (isNew) throw new Error("the connection is lost")
  return true
}

const carts = shoppingCart({
  reserve: done("reserve"),
  charge,
  ship: done("ship"),
  refund: done("refund"),
  release: done("release")
})
const node = await startNode({ actors: [carts], store: memory() })
const cart = carts("cart-1")
await node.ask(cart, { _tag: "Put", sku: "tea", count: 2, cents: 350 })
await node.ask(cart, { _tag: "Put", sku: "cup", count: 1, cents: 900 })
await node.ask(cart, { _tag: "Order" })
const look = () => node.ask(cart, { _tag: "Look" })
while (await look() === "ordering") await new Promise((resolve) => setTimeout(resolve, 500))
console.log(await look())
await node.stop()
