/**
 * The registry port: a few small keys that the nodes of a cluster share. Keys are changed by
 * compare-and-set only. They may have a time to live. Every node watches them.
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { StorageUnavailable } from "../actor/index.ts"

/** The key has changed since the expected revision; nothing was written. */
export class RegistryMoved extends Schema.TaggedError<RegistryMoved>()("RegistryMoved", {
  key: Schema.String,
  expected: Schema.Number
}) {}

/** One key, as it was read or reported by a watch. */
export interface RegistryEntry {
  readonly key: string
  /** undefined: the key does not exist. It was removed, has expired, or was never written. */
  readonly value: string | undefined
  /** Revision of the last write or removal; 0 if there was none. Revisions of a key only grow. */
  readonly revision: number
}

/**
 * After StorageUnavailable, the outcome of a `put` or `remove` is indeterminate: it may have taken
 * effect, or may still do so, unless another node changes the key first.
 */
export interface RegistryApi {
  /**
   * Writes the key if its revision is still `expected`; 0: if the key does not exist. With `ttlMs`
   * the registry removes the key this long after its last write, and never earlier. Returns the
   * new revision.
   */
  readonly put: (
    key: string,
    value: string,
    expected: number,
    ttlMs?: number
  ) => Effect.Effect<number, RegistryMoved | StorageUnavailable>
  /** Removes the key if its revision is still `expected`. */
  readonly remove: (
    key: string,
    expected: number
  ) => Effect.Effect<void, RegistryMoved | StorageUnavailable>
  /** The current entry, as the leader has it. */
  readonly get: (key: string) => Effect.Effect<RegistryEntry, StorageUnavailable>
  /**
   * Reports every existing key, then succeeds. It reports changes in their order until the scope
   * closes; of several changes of one key it may report only the latest. `onChange` must neither
   * throw nor block.
   */
  readonly watch: (
    onChange: (entry: RegistryEntry) => void
  ) => Effect.Effect<void, StorageUnavailable, Scope.Scope>
}

/** The port to the few keys that the nodes of a cluster share, such as claims of shards. */
export class Registry extends Context.Service<Registry, RegistryApi>()(
  "restante/runtime/Registry"
) {}
