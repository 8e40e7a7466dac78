/** Messages that only effects may send: what the types, the nodes and HTTP do with them. */
import { Effect, Layer, Logger } from "effect"
import { afterEach, expect, expectTypeOf, it } from "vitest"
import { expose } from "../../../runtime/http/index.ts"
import { actorSystem, askActor, askPeer, System } from "../../../runtime/index.ts"
import { quiet, request, simulate } from "../../../runtime/testing/index.ts"
import { type ActorNode, become, defineActor, InvalidMessage, memory, refuse, Schema, startNode,
  stay } from "../../../runtime/main.ts"

/** An order, whose payment only its own effect or the cashier reports. */
const order = defineActor("order", {
  state: { Open: {}, Paid: { receipt: Schema.String } },
  messages: {
    Pay: { card: Schema.String },
    Look: {},
    Paid: { receipt: Schema.String },
    Remind: {}
  },
  actions: { Charge: { card: Schema.String } },
  internal: ["Paid"],
  timer: "Remind",
  initial: { _tag: "Open" },
  table: {
    Open: {
      Pay: (_, { card }) => stay().perform({ _tag: "Charge", card }).reply("charging"),
      Look: () => stay().reply("open"),
      Paid: (_, { receipt }) => become({ _tag: "Paid", receipt }).reply(receipt.length),
      Remind: () => stay()
    },
    Paid: {
      Pay: () => refuse("Paid"),
      Look: ({ receipt }) => stay().reply(receipt),
      Paid: () => stay().reply(0),
      Remind: () => stay()
    }
  },
  perform: {
    Charge: ({ card }) => ({ _tag: "Paid", receipt: `of ${card}` })
  }
})

/** Another actor, whose effects pay orders: by a promise, or as an Effect. */
const cashier = defineActor("cashier", {
  state: { Open: { paid: Schema.Int } },
  messages: {
    Take: { order: Schema.String, asEffect: Schema.Boolean },
    Taken: { length: Schema.Int },
    Count: {}
  },
  actions: { Cash: { order: Schema.String, asEffect: Schema.Boolean } },
  internal: ["Taken"],
  initial: { _tag: "Open", paid: 0 },
  table: {
    Open: {
      Take: (_, { asEffect, order }) => stay().perform({ _tag: "Cash", order, asEffect }),
      Taken: ({ paid }, { length }) => become({ _tag: "Open", paid: paid + length }),
      Count: ({ paid }) => stay().reply(paid)
    }
  },
  perform: {
    Cash: ({ asEffect, order: id }, { ask, peers }) => {
      const paid = { _tag: "Paid", receipt: "in cash" } as const
      if (asEffect) {
        return askPeer(peers, order(id), paid).pipe(
          Effect.map((length) => ({ _tag: "Taken", length }) as const)
        )
      }
      return ask(order(id), paid).then((length) => ({ _tag: "Taken", length }) as const)
    }
  }
})

const nodes: Array<ActorNode> = []

const start = async (): Promise<ActorNode> => {
  const node = await startNode({ actors: [order, cashier], store: memory() })
  nodes.push(node)
  return node
}

afterEach(async () => {
  await Promise.all(nodes.splice(0).map((node) => node.stop()))
})

it("takes an internal message as the result of an effect", async () => {
  const node = await start()
  await node.ask(order("a"), { _tag: "Pay", card: "4111" })
  await expect.poll(() => node.ask(order("a"), { _tag: "Look" })).toBe("of 4111")
})

it.each([false, true])(
  "takes it from an effect of another actor (as an Effect: %s)",
  async (as) => {
    const node = await start()
    await node.ask(cashier("front"), { _tag: "Take", order: "b", asEffect: as })
    await expect.poll(() => node.ask(cashier("front"), { _tag: "Count" })).toBe("in cash".length)
    expect(await node.ask(order("b"), { _tag: "Look" })).toBe("in cash")
  }
)

it("takes it from effects on other nodes", async () => {
  const { coverage } = await simulate({
    behaviors: [order, cashier],
    clients: (draw) =>
      request(cashier(draw.pick(["front", "back"])), {
        _tag: "Take",
        order: `order-${draw.below(20)}`,
        asEffect: draw.chance(0.5)
      }),
    // Nothing fails, so that each message of a client has its effect.
    faults: [],
    noise: { ...quiet, outside: 0 },
    seeds: 1
  })
  const countOf = (wanted: string) =>
    coverage.flatMap(({ cells }) => cells).filter(({ message }) => message === wanted)
      .reduce((sum, { count }) => sum + count, 0)
  // The orders are in twenty shards of three nodes, and the cashiers in two.
  const taken = countOf("Take")
  expect(taken).toBeGreaterThan(10)
  expect([countOf("Paid"), countOf("Taken")]).toEqual([taken, taken])
})

it("refuses it from outside, and sends nothing", async () => {
  const node = await start()
  // The types refuse it; a program without types can send it.
  const paid = { _tag: "Paid", receipt: "forged" } as never
  const failed = await node.ask(order("c"), paid).catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(InvalidMessage)
  expect(failed).toMatchObject({ outcome: "unchanged" })
  expect(String(failed)).toContain("order takes Paid from effects only: send another message")
  expect(await node.ask(order("c"), { _tag: "Look" })).toBe("open")
})

it("refuses it from outside by effects too", async () => {
  const paid = { _tag: "Paid", receipt: "forged" } as never // as above
  const program = Effect.gen(function*() {
    const system = yield* System
    const failure = yield* Effect.flip(askActor(system, order("d"), paid))
    return [failure._tag, yield* askActor(system, order("d"), { _tag: "Look" })]
  })
  const layer = Layer.merge(
    actorSystem({ actors: [order], store: memory() }),
    Logger.layer([])
  )
  expect(await Effect.runPromise(Effect.provide(program, layer))).toEqual([
    "UnknownMessage",
    "open"
  ])
})

it("cannot be exposed over HTTP", () => {
  const named = (commands: ReadonlyArray<string>) => () =>
    // The types name no such message; a program without types can.
    expose(order, { commands: commands as ReadonlyArray<"Pay"> })
  expect(named(["Pay", "Look"])).not.toThrow()
  expect(named(["Pay", "Paid"])).toThrow(
    "Paid of order comes from effects only: expose another message"
  )
  expect(named(["Remind"])).toThrow("Remind of order comes from its timer only")
  const check = () => {
    // @ts-expect-error only effects send it
    expose(order, { commands: ["Paid"] })
    // @ts-expect-error only effects send it
    expose(order, { queries: ["Look", "Paid"] })
  }
  expect(check).toBeTypeOf("function")
})

it("has its own type in each place", () => {
  const check = (node: ActorNode) => {
    // @ts-expect-error only effects send it
    void node.ask(order("a"), { _tag: "Paid", receipt: "forged" })
    expectTypeOf(node.ask(order("a"), { _tag: "Look" })).toEqualTypeOf<
      Promise<string>
    >()
    defineActor("till", {
      state: { Open: {} },
      messages: { Take: {} },
      actions: { Cash: {} },
      initial: { _tag: "Open" },
      table: { Open: { Take: () => stay().perform({ _tag: "Cash" }) } },
      perform: {
        Cash: async (_, { ask }) => {
          const paid = ask(order("a"), { _tag: "Paid", receipt: "in cash" })
          expectTypeOf(paid).toEqualTypeOf<Promise<number>>()
          // @ts-expect-error a field is missing
          void ask(order("a"), { _tag: "Paid" })
          // @ts-expect-error only the timer sends it
          void ask(order("a"), { _tag: "Remind" })
        }
      }
    })
  }
  expect(check).toBeTypeOf("function")
})

it("refuses names that are no messages, and the timer's", () => {
  const shared = {
    state: { On: {} },
    messages: { Set: {}, Due: {} },
    timer: "Due",
    initial: { _tag: "On" },
    table: { On: { Set: () => stay(), Due: () => stay() } }
  } as const
  const define = (internal: ReadonlyArray<string>) => () =>
    // The types refuse another name; a program without types can give it.
    defineActor("lamp", { ...shared, internal: internal as ReadonlyArray<"Set"> })
  expect(define(["Set"])).not.toThrow()
  expect(define(["Sett"])).toThrow("lamp has no message Sett: correct `internal`")
  expect(define(["Due"])).toThrow("lamp takes Due from its timer only: leave it out of `internal`")
  const messages = Schema.Union([Schema.TaggedStruct("Set", {}), Schema.TaggedStruct("Due", {})])
  const ofSchema = (internal: ReadonlyArray<string>) => () =>
    defineActor("lamp", { ...shared, messages, internal: internal as ReadonlyArray<"Set"> })
  expect(ofSchema(["Set"])).not.toThrow()
  expect(ofSchema(["Sett"])).toThrow("lamp has no message Sett: correct `internal`")
  const check = () =>
    defineActor("lamp", {
      ...shared,
      // @ts-expect-error no message has this tag
      internal: ["Sett"]
    })
  expect(check).toBeTypeOf("function")
})
