/** A shopping cart. Its order is a saga: steps at other services, each with a compensation. */
import { become, defineActor, refuse, Schema, stay } from "@restante/runtime"

const Step = Schema.Literals(["reserve", "charge", "ship", "refund", "release"])
export type Step = typeof Step.Type
type Outcome = "shipped" | "cancelled"

const Line = Schema.Struct({ sku: Schema.String, count: Schema.Int, cents: Schema.Int })
const order = { lines: Schema.Array(Line), cents: Schema.Int }
const OrderCall = Schema.Struct({ ...order, cart: Schema.String, key: Schema.String })

/** One step of an order. The key is the same each time that the step is repeated. */
export type OrderCall = typeof OrderCall.Type

/**
 * The services that take part. Each does a step once for each key, and returns for the same key
 * the same: whether it was done, or false when it cannot be. It rejects when that is not known, and
 * is called again. `refund` and `release` are always possible.
 */
export type Services = { readonly [S in Step]: (call: OrderCall) => Promise<boolean> }

type Next = Readonly<Record<"done" | "not", Step | Outcome>>

/** What follows on each step. */
const after: Readonly<Record<Step, Next>> = {
  reserve: { done: "charge", not: "cancelled" },
  charge: { done: "ship", not: "release" },
  ship: { done: "shipped", not: "refund" },
  refund: { done: "release", not: "refund" },
  release: { done: "cancelled", not: "release" }
}

const linesMax = 100
/** When a step without an answer is repeated, ms. */
const retryAfterMs = 5_000

/** Takes a step of an order: stored first, then called until it has an answer. */
const take = (step: Step, { cents, lines }: Pick<OrderCall, "cents" | "lines">, cart: string) =>
  become({ _tag: "Ordering", step, lines, cents })
    .attempt({ _tag: "Call", step, cart, key: `${cart}/${step}`, lines, cents }, retryAfterMs)

const state = {
  Shopping: { lines: order.lines },
  Ordering: { ...order, step: Step },
  Closed: { ...order, outcome: Schema.Literals(["shipped", "cancelled"]) }
}

const messages = {
  // Sets the count of a product: a repeated one changes nothing.
  Put: { sku: Schema.String, count: Schema.Int, cents: Schema.Int },
  Order: {},
  Look: {},
  Retry: {},
  Answered: { step: Step, isDone: Schema.Boolean }
}

/** One cart for each id. Every message replies with the status of the cart. */
export const shoppingCart = (services: Services) =>
  defineActor("shopping-cart", {
    state,
    messages,
    actions: { Call: { ...OrderCall.fields, step: Step } },
    internal: ["Answered"],
    timer: "Retry",
    initial: { _tag: "Shopping", lines: [] },
    table: {
      Shopping: {
        Put: ({ lines }, { cents, count, sku }) => {
          if (count < 0 || cents < 0) return refuse("Negative", "count and price are 0 or more")
          const others = lines.filter((line) => line.sku !== sku)
          if (others.length >= linesMax) return refuse("Full", `a cart has ${linesMax} lines`)
          const next = count === 0 ? others : [...others, { sku, count, cents }]
          return become({ _tag: "Shopping", lines: next }).reply("shopping")
        },
        Order: ({ lines }, _, { self }) => {
          if (lines.length === 0) return refuse("Empty", "put something into the cart")
          const cents = lines.reduce((sum, line) => sum + line.count * line.cents, 0)
          return take("reserve", { lines, cents }, self.id).reply("ordering")
        },
        Look: () => stay().reply("shopping"),
        Retry: () => stay(),
        Answered: () => stay()
      },
      Ordering: {
        Put: () => refuse("Ordered", "use another cart"),
        Order: () => stay().reply("ordering"),
        Look: () => stay().reply("ordering"),
        Retry: (state, _, { self }) => take(state.step, state, self.id),
        Answered: (state, { isDone, step }, { self }) => {
          const next = after[step][isDone ? "done" : "not"]
          // The answer to an earlier attempt, or a compensation that the timer repeats.
          if (step !== state.step || next === step) return stay()
          const { cents, lines } = state
          return next === "shipped" || next === "cancelled"
            ? become({ _tag: "Closed", lines, cents, outcome: next }).setTimer(null)
            : take(next, state, self.id)
        }
      },
      Closed: {
        Put: () => refuse("Ordered", "use another cart"),
        Order: ({ outcome }) => stay().reply(outcome),
        Look: ({ outcome }) => stay().reply(outcome),
        Retry: () => stay(),
        Answered: () => stay()
      }
    },
    perform: {
      Call: async ({ step, ...call }) => {
        const isDone = await services[step](call)
        return { _tag: "Answered", step, isDone }
      }
    }
  })
