/**
 * The transport port within one process, for a single node and for tests. Messages are passed
 * unchanged; listeners receive announcements in a microtask.
 */
import { Effect, Layer } from "effect"
import { type Address, AskTimeout, keyOf, NoOwner, shardOf } from "../actor/index.ts"
import { type HintListener, type Serve, Transport, type TransportApi } from "../ports/index.ts"

/** How long a caller should wait for a shard to be served, ms. */
const RETRY_AFTER_MS = 100

const noOwner = (to: Address): NoOwner =>
  new NoOwner({ key: keyOf(to), retryAfterMs: RETRY_AFTER_MS })

const within = (
  to: Address,
  serve: Serve,
  envelope: string,
  deadlineMs: number,
  trace: string | undefined
): Effect.Effect<string, NoOwner | AskTimeout> =>
  Effect.callback<string, NoOwner | AskTimeout>((resume) => {
    const timer = setTimeout(
      () => resume(Effect.fail(new AskTimeout({ key: keyOf(to), deadlineMs }))),
      deadlineMs
    )
    serve(to, envelope, trace).then(
      (reply) => {
        clearTimeout(timer)
        resume(reply === undefined ? Effect.fail(noOwner(to)) : Effect.succeed(reply))
      },
      (defect: unknown) => {
        clearTimeout(timer)
        resume(Effect.die(defect))
      }
    )
    return Effect.sync(() => clearTimeout(timer))
  })

/** A new transport. */
export const makeMemoryTransport = (): TransportApi => {
  const servers = new Map<number, Serve>()
  const watchers = new Map<string, Set<HintListener>>()

  const announce = (about: Address, hint: string): void => {
    if (watchers.size === 0) return
    const key = keyOf(about)
    if (!watchers.has(key)) return
    queueMicrotask(() => {
      for (const listener of [...watchers.get(key) ?? []]) listener(hint)
    })
  }

  const watch = (about: Address, listener: HintListener): () => void => {
    const key = keyOf(about)
    // The same function may watch twice; each watch ends by itself.
    const own: HintListener = (hint) => listener(hint)
    const listeners = watchers.get(key) ?? new Set<HintListener>()
    watchers.set(key, listeners.add(own))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && watchers.get(key) === listeners) watchers.delete(key)
    }
  }

  return {
    request: (to, envelope, deadlineMs, trace) =>
      Effect.suspend((): Effect.Effect<string, NoOwner | AskTimeout> => {
        const serve = servers.get(shardOf(to))
        return serve === undefined
          ? Effect.fail(noOwner(to))
          : within(to, serve, envelope, deadlineMs, trace)
      }),
    serve: (shard, serve) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          if (servers.has(shard)) throw new Error(`shard ${shard} is served already`)
          servers.set(shard, serve)
        }),
        () => Effect.sync(() => servers.delete(shard))
      )),
    announce,
    watch
  }
}

/** A transport within this process. */
export const memoryTransport: Layer.Layer<Transport> = Layer.sync(Transport, makeMemoryTransport)
