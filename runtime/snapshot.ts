/** A snapshot of one node for people and metrics, and the reasons of quarantines. */
import { Cause } from "effect"
import type { ActivationDirectory, Quarantine, Supervisor } from "./activation/index.ts"
import { shardOf } from "./actor/index.ts"
import type { PlacementApi } from "./cluster/index.ts"
import type { RuntimeMetrics } from "./metrics.ts"
import type { TimerService } from "./timers/index.ts"

/** The current load and the metrics of one node. */
export interface Snapshot {
  /** By kind: actors in memory, and their messages without a reply yet. */
  readonly activations: ReadonlyMap<string, { readonly active: number; readonly queued: number }>
  /** Timers in memory: the earliest ones of each shard; the store may have more. */
  readonly timers: number
  /** Timers in memory that are due but not yet delivered. */
  readonly timersDue: number
  /** Timers that are delivered but not yet answered. */
  readonly timersInFlight: number
  readonly earliestTimerMs: number | undefined
  /** Quarantines in the shards that this node owns. */
  readonly quarantined: ReadonlyArray<Quarantine>
  readonly metrics: RuntimeMetrics
}

interface Parts {
  readonly kinds: Iterable<string>
  readonly metrics: RuntimeMetrics
  readonly directory: ActivationDirectory
  readonly supervisor: Supervisor
  readonly timers: TimerService
  readonly placement: PlacementApi
}

export const snapshotOf = (parts: Parts): Snapshot => {
  const { kinds, metrics, placement, directory, supervisor, timers } = parts
  const activations = new Map<string, { active: number; queued: number }>()
  for (const kind of kinds) {
    activations.set(kind, { active: 0, queued: 0 })
    metrics.of(kind)
  }
  for (const { address, queued } of directory.values()) {
    const kind = activations.get(address.kind)
    if (kind === undefined) continue
    kind.active++
    kind.queued += queued
  }
  return {
    activations,
    timers: timers.size,
    timersDue: timers.overdue(),
    timersInFlight: timers.inFlightCount,
    earliestTimerMs: timers.earliestMs,
    // A quarantine does not move with its shard to the next owner.
    quarantined: supervisor.quarantined().filter(({ address }) => placement.owns(shardOf(address))),
    metrics
  }
}

/** Greatest number of characters of an error's name in a reason. */
const nameCharsMax = 80

const framePattern = /^\s+at .*?((?:[\w-]+\/)?[\w.-]+\.[jt]s:\d+)/m

/**
 * The error's name and place, such as `TypeError at mailbox/decide.js:40`. It omits the error's
 * message, which may contain a secret; the log has the message, redacted.
 */
export const reasonOf = (cause: unknown): string => {
  const error = Cause.isCause(cause) ? Cause.squash(cause) : cause
  if (!(error instanceof Error)) return "the cause is not an Error"
  const name = error.name.replace(/[^\w.$/ -]/g, "").slice(0, nameCharsMax)
  const place = framePattern.exec(error.stack?.replace(error.message, "") ?? "")?.[1]
  return place === undefined ? name : `${name} at ${place}`
}
