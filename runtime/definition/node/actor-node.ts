/** A node of defined actors as a layer: the Effect face of definitions. */
import { Layer } from "effect"
import type { AnyBehavior } from "../../actor/index.ts"
import type { Limits } from "../../limits.ts"
import type { MessageObserver } from "../../node.ts"
import { System } from "../../system.ts"
import type { Store } from "./store.ts"

/** Any definition: a node takes its behavior. */
export interface AnyActor {
  readonly behavior: AnyBehavior
}

/** What a node of defined actors consists of; for `startNode` and {@link actorSystem}. */
export interface ActorNodeOptions {
  /** The kinds of actors that the node serves; each kind once. */
  readonly actors: ReadonlyArray<AnyActor>
  /** Where the actors are kept: a node opens it when it starts, and closes it when it stops. */
  readonly store: Store
  /** Replaces some limits of the runtime. */
  readonly limits?: Partial<Limits>
  /** Sees each message of this node with its outcome: for tools of development. */
  readonly observer?: MessageObserver
}

/**
 * The system of a node with these actors. It fails with what the store fails with. Throws a
 * TypeError when two definitions have the same kind.
 */
export const actorSystem = (
  { actors, limits, observer, store }: ActorNodeOptions
): Layer.Layer<System, unknown> => {
  const behaviors = actors.map(({ behavior }) => behavior)
  const kinds = new Set<string>()
  for (const { kind } of behaviors) {
    if (kinds.has(kind)) throw new TypeError(`two definitions are called ${kind}: rename one`)
    kinds.add(kind)
  }
  return Layer.provide(
    System.layer({ behaviors, limits: { ...store.limits, ...limits }, observer }),
    store.ports
  )
}
