/** The simulated JetStream passes what real servers pass, and the store runs on it. */
import { Layer } from "effect"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { Storage, type StorageApi } from "../../../runtime/ports/storage.ts"
import { type Fresh, fromLayer, inMemory } from "../../suites/harness.ts"
import { jetstreamSuite } from "../../suites/jetstream.ts"
import { storageSuite } from "../../suites/storage.ts"
import { SimulatedConnection } from "./connection.ts"
import { type Reply, replyOf, SimulatedJetStream } from "./server.ts"

const maxPayload = 1_048_576

/** How far the replicas are behind, ms. */
const behindMs = 20

const nowMs = (): number => performance.now()

/** A connection to simulated servers without faults: calls take one turn of the event loop. */
const connectTo = (server: SimulatedJetStream, replicas: number): NatsApi => {
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

const storageOn = (replicas: number, buckets: number): Fresh<StorageApi> => async () => {
  const servers = server(replicas)
  const nats = Layer.sync(Nats, () => connectTo(servers, replicas))
  return fromLayer(Storage, Layer.provide(natsStorage({ buckets }), nats), async () => {})
}

for (const replicas of [1, 3]) {
  const name = `simulated, ${replicas === 1 ? "one copy" : "three copies"}`
  jetstreamSuite(name, () => inMemory(() => connectTo(server(replicas), replicas))())
  storageSuite(`JetStream, ${name}`, storageOn(replicas, replicas === 1 ? 4 : 2))
}
