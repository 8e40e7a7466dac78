/** The asks of one turn for one node, and their answers, are one message and one write each. */
import { Effect, Exit, Layer, Logger, ManagedRuntime, Scope } from "effect"
import { beforeEach, describe, expect, it } from "vitest"
import { type Address, address, shardOf } from "../../../runtime/actor/address.ts"
import { envelopeSkewMs, tenureSettledMs } from "../../../runtime/limits.ts"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { TurnWrites } from "../../../runtime/nats/connection/turn-writes.ts"
import { natsTransport } from "../../../runtime/nats/transport/transport.ts"
import { Transport } from "../../../runtime/ports/transport.ts"
import { testAuthenticator } from "./keys.ts"
import { Network } from "./network.ts"
import { requestOf } from "../../suites/request.ts"

const count = 100
/** Actors of the shards of alice and of bob. */
const to = (n: number): Address => address("mailbox", n % 2 === 0 ? "alice" : "bob")
const shards = [shardOf(to(0)), shardOf(to(1))] as const

let network: Network

const connected = async () => {
  const nc = network.connect()
  const writes = new TurnWrites(nc)
  // The transport uses nothing else of the connection.
  const nats = Layer.succeed(Nats, { nc, writes } as NatsApi)
  const layer = Layer.provide(natsTransport(testAuthenticator), [nats, Logger.layer([])])
  const transport = await ManagedRuntime.make(layer).runPromise(Transport)
  const decided: Array<string> = []
  const serve = async (_: unknown, text: string) => {
    decided.push(text)
    return `done ${text}`
  }
  const take = (shard: number) => {
    const scope = Effect.runSync(Scope.make())
    Effect.runSync(Scope.provide(transport.serve(shard, serve), scope))
    return () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
  const ask = (at: Address, text: string) =>
    Effect.runPromise(requestOf(transport, at, text, 10_000))
  return { nc, writes, transport, decided, take, ask }
}

/** Asks of one turn. */
const askAll = async (
  { ask }: Awaited<ReturnType<typeof connected>>,
  label: string
): Promise<void> => {
  const texts = Array.from({ length: count }, (_, n) => `${label} ${n} é🐎`)
  const answers = await Promise.all(texts.map((text, n) => ask(to(n), text)))
  expect(answers).toEqual(texts.map((text) => `done ${text}`))
}

beforeEach(() => {
  network = new Network(Math.random, 5, 0)
})

describe("the asks of one turn", () => {
  it("go in one message once the owner is known, and so do their answers", async () => {
    const [asker, owner] = [await connected(), await connected()]
    for (const shard of shards) owner.take(shard)
    // Until then the owner asks the requester about each message.
    await new Promise((resolve) => setTimeout(resolve, tenureSettledMs + envelopeSkewMs + 100))
    for (const n of [0, 1]) await asker.ask(to(n), "first")
    const before = [asker, owner].map(({ writes: { messages, writes } }) => ({ messages, writes }))
    await askAll(asker, "bundled")
    const after = [asker, owner].map(({ writes: { messages, writes } }) => ({ messages, writes }))
    // The owner decides in a turn of its own for each message at the most.
    expect(after[0]).toEqual({
      messages: (before[0]?.messages ?? 0) + 1,
      writes: (before[0]?.writes ?? 0) + 1
    })
    expect((after[1]?.messages ?? 0) - (before[1]?.messages ?? 0)).toBeLessThan(5)
    expect(owner.decided).toHaveLength(count + 2)
  })

  it("reach the next owner after one of the shards has moved", async () => {
    const [asker, last, next] = [await connected(), await connected(), await connected()]
    const release = last.take(shards[0])
    last.take(shards[1])
    for (const n of [0, 1]) await asker.ask(to(n), "first")
    await release()
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    next.take(shards[0])
    await new Promise((resolve) => setTimeout(resolve, 100))
    await askAll(asker, "moved")
    expect(next.decided).toHaveLength(count / 2)
    expect(last.decided).toHaveLength(count / 2 + 2)
  })

  it("reach the next owner after the last one is gone", async () => {
    const [asker, last, next] = [await connected(), await connected(), await connected()]
    for (const shard of shards) last.take(shard)
    for (const n of [0, 1]) await asker.ask(to(n), "first")
    network.kill(last.nc)
    for (const shard of shards) next.take(shard)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await askAll(asker, "left")
    expect(next.decided).toHaveLength(count)
  })
})
