/**
 * The registry port: the few small facts that the nodes of a cluster share. Each key is changed
 * by compare-and-set only, may expire by itself, and is watched by every node.
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { StorageUnavailable } from "../actor/index.ts"

/** The key was changed since the revision that was expected; nothing was written. */
export class RegistryMoved extends Schema.TaggedError<RegistryMoved>()("RegistryMoved", {
  key: Schema.String,
  expected: Schema.Number
}) {}

/** One key as it is, or was told to be. */
export interface RegistryEntry {
  readonly key: string
  /** undefined: it is not there; it was removed, has expired, or never was. */
  readonly value: string | undefined
  /** Of its last change, a removal too, and 0 when none is known. Revisions of a key only grow. */
  readonly revision: number
}

/**
 * A StorageUnavailable of `put` or `remove` leaves open whether it was done, or will be: it was
 * only if nobody changed the key before it.
 */
export interface RegistryApi {
  /**
   * Writes the key if its last change is still the `expected` one; 0 when it must not be there.
   * With `ttlMs` it is removed by itself so long after it was written, unless it is written again;
   * never sooner. The result is the new revision.
   */
  readonly put: (
    key: string,
    value: string,
    expected: number,
    ttlMs?: number
  ) => Effect.Effect<number, RegistryMoved | StorageUnavailable>
  readonly remove: (
    key: string,
    expected: number
  ) => Effect.Effect<void, RegistryMoved | StorageUnavailable>
  /** The key as it is now, whoever wrote it. */
  readonly get: (key: string) => Effect.Effect<RegistryEntry, StorageUnavailable>
  /**
   * Tells of every key that is there, then succeeds, and goes on telling of changes in their
   * order until the scope closes. Of a key that changes often only the latest may be told.
   * `onChange` must neither throw nor wait.
   */
  readonly watch: (
    onChange: (entry: RegistryEntry) => void
  ) => Effect.Effect<void, StorageUnavailable, Scope.Scope>
}

export class Registry extends Context.Service<Registry, RegistryApi>()(
  "restante/runtime/Registry"
) {}
