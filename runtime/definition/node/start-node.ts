/** A node of defined actors by promises. */
import { Cause, Deferred, Effect, Exit, ManagedRuntime, Stream } from "effect"
import { keyOf, StorageLocked, type Tagged } from "../../actor/index.ts"
import { System, type SystemApi } from "../../system.ts"
import { type ActorNodeOptions, actorSystem } from "./actor-node.ts"
import { askByCallback } from "../asks.ts"
import { LogUnreadable, NodeStartFailed } from "../errors.ts"
import { actorLog, type LogEntry, type LogOptions } from "./log.ts"
import type { ActorRef, Ask } from "../reference.ts"

/** A running node. */
export interface ActorNode {
  /**
   * Sends a message to an actor, on any node, and resolves with its reply once that is durable. A
   * refusal is a reply. Rejects with an {@link ActorError}.
   */
  readonly ask: Ask
  /**
   * The items of an actor's log, and then those that are appended later, until the loop over them
   * ends. It ends with the node. Rejects with the store's failure when the log cannot be read.
   */
  readonly log: <Message extends Tagged, Replies, Item>(
    of: ActorRef<Message, Replies, Item>,
    options?: LogOptions
  ) => AsyncIterable<LogEntry<Item>>
  /** Answers what it has accepted, hands over its shards, and closes the store. */
  readonly stop: () => Promise<void>
  /** The system behind it, for Effect. */
  readonly system: SystemApi
}

const reasonOf = (error: unknown): string => {
  if (typeof error === "object" && error !== null && "detail" in error) return String(error.detail)
  if (error instanceof StorageLocked) {
    const { path, pid } = error
    return `another program has ${path} open${pid === undefined ? "" : ` (process ${pid})`}`
  }
  if (error instanceof Error && error.message !== "") return error.message
  return typeof error === "object" && error !== null && "_tag" in error
    ? String(error._tag)
    : String(error)
}

/**
 * Starts a node with these actors on a store. Rejects with {@link NodeStartFailed} when the store
 * cannot be opened, and with a TypeError when two definitions have the same kind.
 */
export const startNode = async (options: ActorNodeOptions): Promise<ActorNode> => {
  const runtime = ManagedRuntime.make(actorSystem(options))
  const started = await runtime.runPromiseExit(System)
  if (Exit.isFailure(started)) {
    await runtime.dispose()
    const cause = Cause.squash(started.cause)
    const { name } = options.store
    throw new NodeStartFailed(
      `the node does not start on ${name}: ${
        reasonOf(cause)
      }. Correct the cause, and start it again`,
      { cause }
    )
  }
  const system = started.value
  const services = await runtime.context()
  const stopped = Deferred.makeUnsafe<void>()
  let stopping: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    await runtime.runPromise(system.drain)
    Deferred.doneUnsafe(stopped, Effect.void)
    await runtime.dispose()
  }
  return {
    system,
    ask: askByCallback(system),
    log: (of, logOptions) =>
      actorLog(system, of, logOptions).pipe(
        Stream.interruptWhen(Deferred.await(stopped)),
        Stream.mapError((cause) => {
          const text = `the log of ${keyOf(of)} cannot be read: ${reasonOf(cause)}. Try again`
          return new LogUnreadable(text, { cause })
        }),
        Stream.toAsyncIterableWith(services)
      ),
    stop: () => stopping ??= stop()
  }
}
