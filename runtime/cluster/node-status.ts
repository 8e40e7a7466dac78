/**
 * The status of each node, for people: a registry key that the node writes at an interval and that
 * expires. The runtime makes no decision by it.
 */
import { Effect } from "effect"
import type { Fork } from "../clock.ts"
import type { RegistryApi } from "../ports/index.ts"

/** How often a node publishes its status. */
export const nodeStatusIntervalMs = 3_000

/** A status expires this long after its last write: two writes may fail. */
const nodeStatusTtlMs = 10_000

/** The deadline of a write. */
const nodeStatusWriteMs = 2_000

/** The deadline of a read. */
const nodeStatusReadMs = 1_000

/** The status of each node of a cluster, a short text for people. */
export interface NodeStatusApi {
  /** Publishes `text()` now and every {@link nodeStatusIntervalMs}; the result stops it. */
  readonly publish: (text: () => string) => () => void
  /** A node's last status; undefined if it has expired, or the registry does not answer. */
  readonly read: (node: string) => Effect.Effect<string | undefined>
}

/** A single node publishes no status. */
export const noNodeStatus: NodeStatusApi = {
  publish: () => () => {},
  read: () => Effect.succeed(undefined)
}

const nodeStatusKey = (node: string): string => `status.${node}`

/** The status of a node in a cluster. */
export const makeNodeStatus = (registry: RegistryApi, fork: Fork, node: string): NodeStatusApi => {
  const key = nodeStatusKey(node)
  let revision = 0
  const write = Effect.fnUntraced(function*(text: string) {
    const put = (expected: number) => registry.put(key, text, expected, nodeStatusTtlMs)
    revision = yield* Effect.catchTag(put(revision), "RegistryMoved", () =>
      // The key has expired, or an earlier process of this node wrote it.
      Effect.flatMap(registry.get(key), (found) => put(found.revision)))
  })
  return {
    publish: (text) => {
      const round = Effect.suspend(() => write(text())).pipe(
        Effect.timeout(nodeStatusWriteMs),
        Effect.ignore,
        Effect.catchDefect((defect) =>
          Effect.logError("this node cannot publish its status", defect)
        )
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
