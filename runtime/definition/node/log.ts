/** The log of an actor as a stream: what it has, and then what is appended. */
import { Effect, Option, Queue, Stream } from "effect"
import type { StorageFailure, Tagged } from "../../actor/index.ts"
import type { SystemApi } from "../../system.ts"
import type { ActorRef } from "../reference.ts"

/** One item of an actor's log. */
export interface LogEntry<Item> {
  /** Counts from 1 in each actor's log; never used twice. */
  readonly n: number
  readonly item: Item
}

/** Which items of a log are read, and whether to wait for more. */
export interface LogOptions {
  /** The first item's number; 1 by default. */
  readonly from?: number
  /** Whether the stream goes on with items that are appended later; true by default. */
  readonly follow?: boolean
}

/** Items that are read at once, and the characters after which a read ends. */
const pageItemsMax = 128
const pageCharsMax = 1024 * 1024

/** How often the log is read without a hint, ms: a hint may be lost between nodes. */
const pollMs = 1_000

/**
 * The durable items of a log, ascending. It goes on with later items, unless `follow` is false. An
 * item that the Schema of the definition does not decode is a defect.
 */
export const actorLog = <Message extends Tagged, Replies, Item>(
  system: Pick<SystemApi, "read" | "watch">,
  of: ActorRef<Message, Replies, Item>,
  { follow = true, from = 1 }: LogOptions = {}
): Stream.Stream<LogEntry<Item>, StorageFailure> =>
  Stream.unwrap(Effect.gen(function*() {
    // One hint that is not taken yet stands for all later ones.
    const hints = yield* Queue.sliding<void>(1)
    if (follow) {
      yield* Effect.acquireRelease(
        Effect.sync(() => system.watch(of, () => Queue.offerUnsafe(hints, undefined))),
        (unwatch) => Effect.sync(unwatch)
      )
    }
    const page = (next: number) =>
      Effect.gen(function*() {
        const items = yield* system.read(of, next, pageItemsMax, pageCharsMax)
        const last = items.at(-1)?.n
        if (last === undefined && follow) yield* Effect.timeoutOption(Queue.take(hints), pollMs)
        const entries = items.map(({ n, value }) => ({ n, item: of.protocol.decodeItem(value) }))
        const isOver = last === undefined && !follow
        return [entries, isOver ? Option.none() : Option.some((last ?? next - 1) + 1)] as const
      })
    return Stream.paginate(from, page)
  }))
