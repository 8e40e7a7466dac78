/** Where a node keeps its actors: a value for each kind of store. */
import { Layer } from "effect"
import { type Placement, singleNodePlacement } from "../../cluster/index.ts"
import type { Limits } from "../../limits.ts"
import { makeMemoryStorage, memoryTransport } from "../../memory/index.ts"
import { Storage, type Transport } from "../../ports/index.ts"

/** What a node needs to run: its storage, its transport, and which shards it owns. */
export type StorePorts = Storage | Transport | Placement

/**
 * A place for actors: `memory()`, `embedded("./data")` or `nats("nats://…")`. A node opens it when
 * it starts, and closes it when it stops.
 */
export interface Store {
  /** For people: `memory`, or where the data is. */
  readonly name: string
  /** The ports of a node on this store; it fails when the store cannot be opened. */
  readonly ports: Layer.Layer<StorePorts, unknown>
  /** The limits that suit the store. */
  readonly limits?: Partial<Limits>
}

/** Actors in the memory of this process, for as long as the value exists: for tests. */
export const memory = (): Store => {
  const storage = makeMemoryStorage()
  return {
    name: "memory",
    ports: Layer.mergeAll(Layer.succeed(Storage, storage), memoryTransport, singleNodePlacement)
  }
}
