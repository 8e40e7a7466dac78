/** A server is killed under many writers: only actors of the streams that it led wait. */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Layer, ManagedRuntime } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { shardOf } from "../../../runtime/actor/address.ts"
import { isRefusal, singleNodePlacement, System, type SystemApi } from "../../../runtime/index.ts"
import { memoryTransport } from "../../../runtime/memory/transport.ts"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { at, probe } from "../probe.ts"
import { type NatsCluster, type NatsServer, startCluster } from "./servers.ts"

const buckets = 4

const writersMax = 300

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const streamOf = (id: string): number => shardOf(at(id)) % buckets

/** Appends one item after another, and remembers those that were acknowledged. */
class Writer {
  readonly id: string
  readonly acknowledged: Array<string> = []
  private readonly system: SystemApi
  private ended = false

  constructor(system: SystemApi, id: string) {
    this.system = system
    this.id = id
  }

  async run(): Promise<void> {
    for (let n = 0; !this.ended; n++) {
      const text = `${this.id} ${n}`
      // While its stream has no leader, a message fails, and may have been stored.
      if (await this.append(text)) this.acknowledged.push(text)
    }
  }

  end(): void {
    this.ended = true
  }

  private append(text: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.system.askByCallback(at(this.id), { _tag: "Note", text }, (failure, reply) => {
        resolve(failure === undefined && !isRefusal(reply))
      })
    })
  }
}

/** Waits until each of these writers has had `more` acknowledgements from now on. */
const progress = async (writers: ReadonlyArray<Writer>, more: number): Promise<void> => {
  const goals = writers.map(({ acknowledged }) => acknowledged.length + more)
  while (writers.some(({ acknowledged }, index) => acknowledged.length < (goals[index] ?? 0))) {
    await wait(20)
  }
}

let cluster: NatsCluster

beforeAll(async () => {
  cluster = await startCluster(3)
})

afterAll(() => cluster.close())

/** Leaves this stream one replica, on a server that leads no other stream; returns the server. */
const isolate = async (stream: string): Promise<NatsServer> => {
  const nc = await connect({ servers: [...cluster.urls] })
  const jsm = await jetstreamManager(nc, { checkAPI: false })
  await jsm.streams.update(stream, { num_replicas: 1 })
  await nc.close()
  const server = await cluster.leaderOf(stream)
  if (server === undefined) throw new Error(`${stream} has no leader`)
  for (let n = 0; n < buckets; n++) {
    const other = `KV_actors-${n}`
    if (other === stream) continue
    while ((await cluster.leaderOf(other))?.url === server.url) {
      await cluster.stepDown(other)
      const isHealthy = async () => {
        const { behind, unavailable } = await cluster.health()
        return unavailable.length + behind.size === 0
      }
      while (!await isHealthy()) await wait(50)
    }
  }
  return server
}

it("commits of other streams settle while a stream has no leader", async () => {
  const open = (servers: ReadonlyArray<string>) =>
    ManagedRuntime.make(
      System.layer({
        behaviors: [probe()],
        limits: { groupCommitsMax: 500, groupsInFlightMax: 4_000 }
      }).pipe(
        Layer.provide(natsStorage({ buckets })),
        Layer.provide([connection({ servers, name: "node" }), memoryTransport, singleNodePlacement])
      )
    )
  const before = open(cluster.urls)
  await before.runPromise(System)
  await before.dispose()
  const server = await isolate("KV_actors-1")
  // The node is connected to the server that dies, and must find another one first.
  const runtime = open([server.url])
  const system = await runtime.runPromise(System)
  const writers = Array.from({ length: writersMax }, (_, n) => new Writer(system, `m${n}`))
  const waiting = writers.filter(({ id }) => streamOf(id) === 1)
  const served = writers.filter(({ id }) => streamOf(id) !== 1)
  expect(waiting.length).toBeGreaterThan(0)
  const running = Promise.all(writers.map((writer) => writer.run()))
  await progress(writers, 3)
  await server.stop()
  const counts = waiting.map(({ acknowledged }) => acknowledged.length)
  await progress(served, 20)
  expect(waiting.map(({ acknowledged }) => acknowledged.length)).toEqual(counts)
  await server.restart()
  await progress(writers, 3)
  for (const writer of writers) writer.end()
  await running
  for (const { acknowledged, id } of writers) {
    const items = await Effect.runPromise(system.read(at(id), 1, 1_000_000))
    const stored = items.map(({ value }) => value)
    expect(new Set(stored).size).toBe(stored.length)
    const wanted = new Set(acknowledged)
    expect(stored.filter((text) => wanted.has(text))).toEqual(acknowledged)
  }
  await runtime.dispose()
})
