/** What an order must hold on a cluster with faults, and with services that lose answers. */
import { noServices, request, type SimulateOptions } from "@restante/runtime/testing"
import { type OrderCall, type Services, shoppingCart, type Step } from "./index.ts"

/** The definition as clients use it; each process of a node makes its own, with services. */
const carts = shoppingCart(noServices())

/** The step that is not possible for the orders of a cart. */
const refusals: Readonly<Record<string, Step | undefined>> = {
  well: undefined,
  "sold-out": "reserve",
  declined: "charge",
  "too-heavy": "ship"
}
const ids = Object.keys(refusals)

type Cart = typeof carts.behavior.initial

/** The other services: what they have done, in order, and their answers by key. */
class World {
  readonly done: Array<string> = []
  private readonly answers = new Map<string, boolean>()

  call(step: Step, { cart, key }: OrderCall): boolean {
    const known = this.answers.get(key)
    if (known !== undefined) return known
    const isDone = refusals[cart] !== step
    this.answers.set(key, isDone)
    if (isDone) this.done.push(`${step} ${cart}`)
    return isDone
  }

  /** The steps that were done for a cart, in their order. */
  of(cart: string): string {
    return this.done.filter((one) => one.endsWith(` ${cart}`))
      .map((one) => one.slice(0, one.indexOf(" "))).join()
  }
}

/** What is done for an order by its end. */
const courses: Readonly<Record<string, string>> = {
  well: "reserve,charge,ship",
  "sold-out": "",
  declined: "reserve,release",
  "too-heavy": "reserve,charge,refund,release"
}

const stateIn = (stateOf: (of: ReturnType<typeof carts>) => unknown, id: string): Cart =>
  // The behaviors of this simulation store carts only.
  stateOf(carts(id)) as Cart

/** Customers that fill carts and order them. */
export const cartSimulation = {
  behaviors: (host, world) => {
    const at = (step: Step) => (call: OrderCall) => host.outside(step, () => world.call(step, call))
    const services: Services = {
      reserve: at("reserve"),
      charge: at("charge"),
      ship: at("ship"),
      refund: at("refund"),
      release: at("release")
    }
    return [shoppingCart(services)]
  },
  services: () => new World(),
  clients: (draw) =>
    request(
      carts(draw.pick(ids)),
      draw.pick([
        { _tag: "Put", sku: draw.pick(["tea", "cup"]), count: draw.below(3), cents: 250 },
        { _tag: "Order" },
        { _tag: "Look" }
      ]),
      { attempts: 3 }
    ),
  isAtRest: ({ stateOf }) => ids.every((id) => stateIn(stateOf, id)._tag !== "Ordering"),
  model: "table",
  invariants: [
    {
      name: "no order is charged twice",
      always: ({ services }, { id }) =>
        services.of(id).split(",").filter((step) => step === "charge").length > 1 ? id : undefined
    },
    {
      name: "nothing is sent without a payment",
      always: ({ services }, { id }) =>
        /^(?!.*charge.*ship).*ship/.test(services.of(id)) ? services.of(id) : undefined
    },
    {
      name: "an order ends shipped, or with all undone",
      atRest: ({ services, stateOf }) =>
        ids.find((id) => {
          const isClosed = stateIn(stateOf, id)._tag === "Closed"
          return services.of(id) !== (isClosed ? courses[id] : "")
        })
    }
  ]
} satisfies SimulateOptions<World>
