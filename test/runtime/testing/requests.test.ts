/** Requests that a definition types, and services of a definition that has none. */
import { expect, expectTypeOf, it } from "vitest"
import { become, defineActor, InvalidMessage, type PlainRefusal, refuse, Schema,
  stay } from "../../../runtime/main.ts"
import { type ClientAttempt, noServices, type ReceivedReply, request, simulate, startTestNode,
  testTable, withMessage } from "../../../runtime/testing/index.ts"

interface Services {
  readonly bank: { readonly charge: (key: string) => Promise<string> }
}

const cart = ({ bank }: Services) =>
  defineActor("cart", {
    state: { Open: { count: Schema.Int }, Paid: {} },
    messages: { Put: { by: Schema.Int }, Pay: {}, Look: {}, Charged: {} },
    actions: { Charge: {} },
    internal: ["Charged"],
    initial: { _tag: "Open", count: 0 },
    table: {
      Open: {
        Put: ({ count }, { by }) => become({ _tag: "Open", count: count + by }).reply(count + by),
        Pay: () => stay().perform({ _tag: "Charge" }).reply("paying"),
        Look: ({ count }) => stay().reply(count),
        Charged: () => become({ _tag: "Paid" })
      },
      Paid: {
        Put: () => refuse("Paid"),
        Pay: () => stay().reply("paid"),
        Look: () => stay().reply(-1),
        Charged: () => stay()
      }
    },
    perform: {
      Charge: async (_, { self }) => {
        await bank.charge(self.id)
        return { _tag: "Charged" }
      }
    }
  })

const carts = cart(noServices())

it("makes requests that the types and the Schema of the definition accept", () => {
  const to = carts("a")
  expect(request(to, { _tag: "Put", by: 2 })).toEqual({ to, message: { _tag: "Put", by: 2 } })
  expect(request(to, { _tag: "Look" }, { attempts: 3 }))
    .toEqual({ to, message: { _tag: "Look" }, attempts: 3 })
  const { message } = request(
    to,
    (received) => received.length > 1 ? undefined : { _tag: "Put", by: received.length }
  )
  const reply: ReceivedReply = { to, message: { _tag: "Look" }, reply: 0 }
  expect(typeof message === "function" && message([reply])).toEqual({ _tag: "Put", by: 1 })
  expect(typeof message === "function" && message([reply, reply])).toBeUndefined()
})

it("refuses what the types refuse, also in a program without types", () => {
  const to = carts("a")
  // @ts-expect-error a field has another type
  expect(() => request(to, { _tag: "Put", by: "2" })).toThrow(InvalidMessage)
  // @ts-expect-error no such message
  expect(() => request(to, { _tag: "Take", by: 2 })).toThrow(InvalidMessage)
  // @ts-expect-error only effects send it
  expect(() => request(to, { _tag: "Charged" })).toThrow("cart takes Charged from effects only")
  // @ts-expect-error only effects send it
  const { message } = request(to, () => ({ _tag: "Charged" }))
  expect(() => typeof message === "function" && message([])).toThrow(InvalidMessage)
})

it("selects attempts by message, with its type and that of its reply", () => {
  const attempt = { client: "c", outcome: "ok", why: undefined, startMs: 0, endMs: 1 } as const
  const sent = { _tag: "Put", by: 2 } as const
  const attempts: ReadonlyArray<ClientAttempt> = [
    { ...attempt, to: carts("a"), message: sent, reply: 2 },
    { ...attempt, to: carts("a"), message: { _tag: "Look" }, reply: 2 },
    { ...attempt, to: { kind: "other", id: "a" }, message: sent, reply: 2 }
  ]
  const [put, ...others] = withMessage(attempts, carts, "Put")
  expect(put).toEqual(attempts[0])
  expect(others).toEqual([])
  const check = () => {
    expectTypeOf(put?.message.by).toEqualTypeOf<number | undefined>()
    expectTypeOf(put?.reply).toEqualTypeOf<number | PlainRefusal | undefined>()
    expectTypeOf(put?.endMs).toEqualTypeOf<number | undefined>()
  }
  expect(check).toBeTypeOf("function")
})

it("simulates a definition of services", async () => {
  const { answered, coverage: [cells] } = await simulate({
    behaviors: (host) => [
      cart({ bank: { charge: (key) => host.outside("bank", () => `receipt of ${key}`) } })
    ],
    clients: (draw) =>
      request(
        carts(draw.pick(["a", "b"])),
        draw.pick([{ _tag: "Put", by: 1 }, { _tag: "Pay" }, { _tag: "Look" }])
      ),
    seeds: 2
  })
  expect(answered).toBeGreaterThan(10)
  expect(cells?.missing).not.toContain("Open x Charged")
})

it("reports actors by kind and id, and not with their definitions", async () => {
  const failure: unknown = await simulate({
    behaviors: [carts],
    clients: (draw) =>
      draw.chance(0.5)
        ? request(carts("a"), { _tag: "Put", by: 1 })
        : request(carts("b"), () => ({ _tag: "Look" })),
    invariants: [{
      name: "both actors are asked",
      atRest: ({ attempts }) =>
        new Set(attempts.map(({ to }) => to.id)).size > 1 ? "yes" : undefined
    }],
    minutes: 0.2,
    restMs: 1_000,
    seeds: 1
  }).then(() => undefined, (error: unknown) => error)
  const report = String(failure)
  expect(report).toContain("\"to\": \"cart/a\",\n    \"message\": {\n     \"_tag\": \"Put\",")
  expect(report).toContain("\"to\": \"cart/b\",\n    \"message\": \"made of the replies\"")
  expect(report).not.toContain("protocol")
})

it("has services for what performs nothing, and throws when an effect calls one", async () => {
  testTable(carts).given().when({ _tag: "Pay" })
    .then({ reply: "paying", perform: [{ _tag: "Charge" }] })
  const { bank } = noServices<Services>()
  expect(() => bank.charge("key")).toThrow(
    "services.bank.charge was called, where noServices() says that nothing is: make"
  )
  await using node = await startTestNode({ behaviors: [carts] })
  await node.ask(carts("a"), { _tag: "Pay" })
  await node.advance(10)
  expect(node.stateOf(carts("a"))).toEqual({ _tag: "Open", count: 0 })
})
