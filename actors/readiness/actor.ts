/** The readiness check bound to the runtime, and the turn that a node makes of it. */
import { Effect } from "effect"
import { type Address, address, type AskFailure, type Behavior, type Peers, shardOf,
  type StorageFailure, type Tagged } from "../../runtime/index.ts"
import { codecsOf } from "../schemas.ts"
import { readinessTable } from "./decide.ts"
import { ReadinessMessage, type ReadinessReply, ReadinessState } from "./protocol.ts"

export const readinessKind = "readiness"

/** The check of one shard. */
export const readiness: Behavior<ReadinessState, ReadinessMessage, ReadinessReply, Tagged> = {
  kind: readinessKind,
  initial: { _tag: "Checked" },
  table: readinessTable,
  ...codecsOf(ReadinessState, ReadinessMessage),
  perform: () => Effect.void
}

/** The address of a shard's check: the lowest number that is in the shard. */
export const readinessAddress = (shard: number): Address => {
  for (let n = 0;; n++) {
    const to = address(readinessKind, String(n))
    if (shardOf(to) === shard) return to
  }
}

/**
 * Makes a turn of the check of a shard: it commits a log item, replies, and the item is read back.
 * False if the store has answered without the item that it acknowledged.
 */
export const makeTurn = (
  { ask, read }: Peers,
  shard: number
): Effect.Effect<boolean, AskFailure | StorageFailure> => {
  const to = readinessAddress(shard)
  const check: ReadinessMessage = { _tag: "Check" }
  return Effect.flatMap(ask(to, check), (reply) => {
    // The kind has one reply, and refuses nothing.
    const { n } = reply as ReadinessReply
    return Effect.map(read(to, n, 1), ([item]) => item !== undefined && item.n >= n)
  })
}
