/**
 * The storage of the services of the suites, by the project's TEST_BACKEND: memory, RocksDB or
 * LevelDB in a temporary folder, one node on a NATS server, or three nodes on three servers.
 */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inject } from "vitest"
import { serviceFormat } from "../../actors/index.ts"
import { embedded, type EngineName } from "../../runtime/embedded/index.ts"
import { type Blobs, clusterPlacement, type Limits, type Placement, type Records,
  singleNodePlacement, type Storage, type Transport } from "../../runtime/index.ts"
import { memoryBlobs } from "../../runtime/memory/blobs.ts"
import { memoryRecords } from "../../runtime/memory/records.ts"
import { memoryStorage } from "../../runtime/memory/storage.ts"
import { memoryTransport } from "../../runtime/memory/transport.ts"
import { natsBlobs } from "../../runtime/nats/blobs/blobs.ts"
import { connection } from "../../runtime/nats/connection/connection.ts"
import { natsRecords } from "../../runtime/nats/records/records.ts"
import { natsRegistry } from "../../runtime/nats/registry/registry.ts"
import { natsStorage } from "../../runtime/nats/storage/storage.ts"
import { natsPings } from "../../runtime/nats/transport/pings.ts"
import { natsTransport } from "../../runtime/nats/transport/transport.ts"
import { takeAccount } from "./nats-setup.ts"
import { testAuthenticator } from "../runtime/nats/keys.ts"

type Ports = Storage | Transport | Records | Blobs | Placement
type PlacementApi = Placement["Service"]

export interface Backend {
  /** The ports of each node. */
  readonly nodes: ReadonlyArray<Layer.Layer<Ports>>
  /** The limits that a deployed service has on this backend. */
  readonly limits: Partial<Limits>
  /** Resolves when every shard has an owner and all nodes see the same owners. */
  readonly settled: (placements: ReadonlyArray<PlacementApi>) => Promise<void>
  /** Removes all data; call it after the nodes have closed. */
  readonly discard: () => Promise<void>
}

const settledWithinMs = 120_000
const pollMs = 20

const inMemory = (): Backend => ({
  nodes: [
    Layer.mergeAll(memoryStorage, memoryTransport, memoryBlobs, memoryRecords, singleNodePlacement)
  ],
  limits: {},
  settled: async () => {},
  discard: async () => {}
})

const onDisk = (engine: EngineName): Backend => {
  const folder = mkdtempSync(join(tmpdir(), "restante-http-"))
  return {
    // A store that does not open must fail the test.
    nodes: [Layer.merge(Layer.orDie(embedded(folder, { engine })), singleNodePlacement)],
    limits: {},
    settled: async () => {},
    discard: async () => rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether each node owns shards, no two nodes the same ones, and all see the same owners. */
const isSettled = (placements: ReadonlyArray<PlacementApi>): boolean => {
  const views = placements.map((placement) => placement.view())
  const owners = views[0]?.owners ?? []
  return views.every(({ nodes, self }) =>
    nodes.length === placements.length && owners.includes(self)
  ) && owners.every((owner, shard) =>
    placements.every((placement, at) =>
      placement.owns(shard) === (views[at]?.self === owner) && views[at]?.owners[shard] === owner
    )
  )
}

const settled = async (placements: ReadonlyArray<PlacementApi>): Promise<void> => {
  const untilMs = performance.now() + settledWithinMs
  while (!isSettled(placements)) {
    if (performance.now() > untilMs) throw new Error("the nodes do not share the shards out")
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

const removeStreams = async (url: string, account: ReturnType<typeof takeAccount>) => {
  const nc = await connect({ servers: [url], ...account })
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: 20_000 })
  for await (const { config } of jsm.streams.list()) await jsm.streams.delete(config.name)
  await nc.close()
}

/** One node for each server. */
const onNats = (): Backend => {
  const { accountsFolder, urls } = inject("nats")
  const account = takeAccount(accountsFolder)
  const [first = ""] = urls
  const nodeOn = (url: string, at: number): Layer.Layer<Ports> =>
    Layer.mergeAll(
      natsStorage(),
      natsRecords,
      natsBlobs(),
      natsTransport(testAuthenticator),
      Layer.provide(
        clusterPlacement({ node: `node-${at}`, format: serviceFormat }),
        Layer.merge(natsRegistry, natsPings(testAuthenticator))
      )
    ).pipe(
      Layer.provide(connection({ servers: [url], name: `test ${at}`, ...account })),
      Layer.orDie
    )
  return {
    nodes: urls.map(nodeOn),
    limits: { groupCommitsMax: 500, groupsInFlightMax: 2 },
    settled,
    discard: () => removeStreams(first, account)
  }
}

/** An empty backend of the project's kind. */
export const openBackend = (): Backend => {
  switch (process.env["TEST_BACKEND"]) {
    case "embedded":
      return onDisk("rocksdb")
    case "leveldb":
      return onDisk("leveldb")
    case "nats":
    case "cluster":
      return onNats()
    default:
      return inMemory()
  }
}
