/**
 * What each node tells of itself, for people: a key of the registry that it writes anew every so
 * often, beside its membership, and that ends by itself. Nothing is ever decided by it.
 */
import { Effect } from "effect"
import type { Fork } from "../clock.ts"
import type { RegistryApi } from "../ports/index.ts"

/** How often a notice is written. */
export const NOTICE_EVERY_MS = 3_000

/** It ends so long after it was last written: two may fail. */
const NOTICE_TTL_MS = 10_000

/** Writing one may take so long. */
const NOTICE_DEADLINE_MS = 2_000

/** Reading one may take so long. */
const NOTICE_READ_MS = 1_000

export interface NodeStatusApi {
  /** Tells what `text` gives, now and every {@link NOTICE_EVERY_MS}; the result ends it. */
  readonly post: (text: () => string) => () => void
  /** What a node told last; undefined when it has told nothing of late, or nobody answers. */
  readonly of: (node: string) => Effect.Effect<string | undefined>
}

/** Of a node that is alone: there is nobody to tell. */
export const noNodeStatus: NodeStatusApi = {
  post: () => () => {},
  of: () => Effect.succeed(undefined)
}

const noticeKey = (node: string): string => `notice.${node}`

/** The notices of a node among others. */
export const makeNodeStatus = (registry: RegistryApi, fork: Fork, node: string): NodeStatusApi => {
  const key = noticeKey(node)
  let revision = 0
  const write = Effect.fnUntraced(function*(text: string) {
    const put = (expected: number) => registry.put(key, text, expected, NOTICE_TTL_MS)
    revision = yield* Effect.catchTag(put(revision), "RegistryMoved", () =>
      // It has ended, or was written before this start of the node.
      Effect.flatMap(registry.get(key), (found) => put(found.revision)))
  })
  return {
    post: (text) => {
      const round = Effect.suspend(() => write(text())).pipe(
        Effect.timeout(NOTICE_DEADLINE_MS),
        Effect.ignore,
        Effect.catchDefect((defect) => Effect.logError("this node tells nothing of itself", defect))
      )
      const fiber = fork(Effect.forever(Effect.andThen(round, Effect.sleep(NOTICE_EVERY_MS))))
      return () => fiber.interruptUnsafe()
    },
    of: (other) =>
      registry.get(noticeKey(other)).pipe(
        Effect.timeout(NOTICE_READ_MS),
        Effect.map(({ value }) => value),
        Effect.orElseSucceed(() => undefined)
      )
  }
}
