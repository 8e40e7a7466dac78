/**
 * The status of each node, for people: a key of the registry beside its membership, which the node
 * writes at an interval, and which ends by itself. Nothing is decided by it.
 */
import { Effect } from "effect"
import type { Fork } from "../clock.ts"
import type { RegistryApi } from "../ports/index.ts"

/** How often a node publishes its status. */
export const nodeStatusIntervalMs = 3_000

/** A status ends so long after its last write: two writes may fail. */
const nodeStatusTtlMs = 10_000

/** The deadline of a write. */
const nodeStatusWriteMs = 2_000

/** The deadline of a read. */
const nodeStatusReadMs = 1_000

export interface NodeStatusApi {
  /** Tells what `text` gives, now and every {@link nodeStatusIntervalMs}; the result ends it. */
  readonly publish: (text: () => string) => () => void
  /** What a node told last; undefined when it has told nothing of late, or nobody answers. */
  readonly read: (node: string) => Effect.Effect<string | undefined>
}

/** Of a node that is alone: there is nobody to tell. */
export const noNodeStatus: NodeStatusApi = {
  publish: () => () => {},
  read: () => Effect.succeed(undefined)
}

const nodeStatusKey = (node: string): string => `status.${node}`

/** The status of a node among others. */
export const makeNodeStatus = (registry: RegistryApi, fork: Fork, node: string): NodeStatusApi => {
  const key = nodeStatusKey(node)
  let revision = 0
  const write = Effect.fnUntraced(function*(text: string) {
    const put = (expected: number) => registry.put(key, text, expected, nodeStatusTtlMs)
    revision = yield* Effect.catchTag(put(revision), "RegistryMoved", () =>
      // It has ended, or was written before this start of the node.
      Effect.flatMap(registry.get(key), (found) => put(found.revision)))
  })
  return {
    publish: (text) => {
      const round = Effect.suspend(() => write(text())).pipe(
        Effect.timeout(nodeStatusWriteMs),
        Effect.ignore,
        Effect.catchDefect((defect) => Effect.logError("this node tells nothing of itself", defect))
      )
      const fiber = fork(Effect.forever(Effect.andThen(round, Effect.sleep(nodeStatusIntervalMs))))
      return () => fiber.interruptUnsafe()
    },
    read: (other) =>
      registry.get(nodeStatusKey(other)).pipe(
        Effect.timeout(nodeStatusReadMs),
        Effect.map(({ value }) => value),
        Effect.orElseSucceed(() => undefined)
      )
  }
}
