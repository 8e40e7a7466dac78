/** The simulated JetStream passes what real servers pass, and the store runs on it. */
import { Layer } from "effect"
import { describe, expect, it } from "vitest"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { Storage, type StorageApi } from "../../../runtime/ports/storage.ts"
import { type Fresh, fromLayer, inMemory } from "../../suites/harness.ts"
import { jetstreamSuite } from "../../suites/jetstream.ts"
import { alice, commitOf, itemsOf, run } from "../../suites/storage-probe.ts"
import { storageSuite } from "../../suites/storage.ts"
import { SimulatedConnection } from "./connection.ts"
import { type Reply, replyOf, SimulatedJetStream } from "./server.ts"

const payloadDefault = 1_048_576

/** How far the replicas are behind, ms. */
const behindMs = 20

const nowMs = (): number => performance.now()

/** A connection to simulated servers without faults: calls take one turn of the event loop. */
const connectTo = (
  server: SimulatedJetStream,
  replicas: number,
  maxPayload = payloadDefault
): NatsApi => {
  const answer = (reply: string, answers: () => ReadonlyArray<Reply>): void => {
    setImmediate(() => {
      const all = answers()
      setImmediate(() => {
        for (const one of all) connection.deliver(reply, one)
      })
    })
  }
  const connection = new SimulatedConnection({ maxPayload, replicas }, {
    write: (messages, reply) => answer(reply, () => [replyOf(server.write(messages))]),
    call: (call, reply) =>
      answer(reply, () => {
        const isStale = replicas > 1 && call.name === "DIRECT.GET"
        return server.answer(call, isStale ? nowMs() - behindMs : nowMs())
      })
  })
  return connection.api("test")
}

const server = (replicas: number): SimulatedJetStream =>
  new SimulatedJetStream(nowMs, Date.now() - nowMs(), replicas)

const storageOn = (
  replicas: number,
  buckets: number,
  maxPayload = payloadDefault
): Fresh<StorageApi> =>
async () => {
  const servers = server(replicas)
  const nats = Layer.sync(Nats, () => connectTo(servers, replicas, maxPayload))
  return fromLayer(Storage, Layer.provide(natsStorage({ buckets }), nats), async () => {})
}

for (const replicas of [1, 3]) {
  const name = `simulated, ${replicas === 1 ? "one copy" : "three copies"}`
  jetstreamSuite(name, () => inMemory(() => connectTo(server(replicas), replicas))())
  storageSuite(`JetStream, ${name}`, storageOn(replicas, replicas === 1 ? 4 : 2))
}

describe("a small max_payload", () => {
  it.each([1, 3])("does not keep a log from being read in one go: %i copies", async (replicas) => {
    const { api, close } = await storageOn(replicas, 1, 16 * 1_024)()
    const items = itemsOf(1, 900)
    await run(api.commit([commitOf({ append: items })]))
    // The names of its keys are longer than a message may be.
    expect(await run(api.read(alice, 1, 1_000))).toEqual(items)
    expect(await run(api.load(alice))).toMatchObject({ head: 900 })
    await close()
  })
})
