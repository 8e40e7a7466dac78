/** Deciding: one cell of a behaviour's table is asked, and what it says is looked over. */
import { type AnyBehavior, Decision, type DecisionContext, type Tagged } from "./actor.ts"
import { shardOf } from "./address.ts"

export type AnyDecision = Decision<unknown, unknown, unknown>

/**
 * The decision on one message; undefined when the table has no such cell. Throws what the cell
 * throws, and when its decision breaks a rule that no type can hold.
 */
export const decideOn = (
  behaviour: AnyBehavior,
  state: Tagged,
  message: Tagged,
  context: DecisionContext,
  shard: number
): AnyDecision | undefined => {
  const cell = behaviour.table[state._tag]?.[message._tag]
  if (cell === undefined) return
  const decision: unknown = cell(state, message, context)
  if (!(decision instanceof Decision)) {
    throw new TypeError(`${behaviour.kind}: ${state._tag} x ${message._tag} made no decision`)
  }
  const { holdUntilMs, othersWake, wakeAtMs } = decision
  if (typeof wakeAtMs === "number" && !Number.isFinite(wakeAtMs)) {
    throw new RangeError(`${behaviour.kind}: a wake-up at ${wakeAtMs} ms is no time`)
  }
  if (holdUntilMs !== undefined && !Number.isFinite(holdUntilMs)) {
    throw new RangeError(`${behaviour.kind}: a hold until ${holdUntilMs} ms has no end`)
  }
  if (othersWake !== undefined) {
    for (const { address, atMs } of othersWake) {
      if (!Number.isFinite(atMs)) throw new RangeError(`a wake-up at ${atMs} ms is no time`)
      if (shardOf(address) !== shard) {
        throw new RangeError(`${address.kind}/${address.id} is of another shard: not to be woken`)
      }
    }
  }
  return decision
}
