/** How a node stands: what it holds just now, and why actors of it rest. */
import { Cause } from "effect"
import type { ActivationDirectory, Quarantine, Supervisor } from "./activation/index.ts"
import { shardOf } from "./actor/index.ts"
import type { PlacementApi } from "./cluster/index.ts"
import type { RuntimeMetrics } from "./metrics.ts"
import type { TimerService } from "./timers/index.ts"

/** What one node holds just now. */
export interface Snapshot {
  /** By kind: actors in memory, and the messages that they have not yet replied to. */
  readonly activations: ReadonlyMap<string, { readonly active: number; readonly queued: number }>
  /** Timers known in memory: of each shard those that come first; the store may have more. */
  readonly timers: number
  /** Those of them that are due, and not yet delivered. */
  readonly timersDue: number
  /** Timers that are delivered, and not yet answered. */
  readonly timersInFlight: number
  readonly earliestTimerMs: number | undefined
  /** Of the shards that this node owns. */
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
    // What rested here when its shard moved does not rest at its next owner.
    quarantined: supervisor.quarantined().filter(({ address }) => placement.owns(shardOf(address))),
    metrics
  }
}

/** Characters of an error's name that are told, at most. */
const nameCharsMax = 80

const framePattern = /^\s+at .*?((?:[\w-]+\/)?[\w.-]+\.[jt]s:\d+)/m

/**
 * What broke and where, as `TypeError at mailbox/decide.js:40`. What an error says of itself may
 * hold a secret of the message, and is left to the logs, which redact it.
 */
export const reasonOf = (cause: unknown): string => {
  const error = Cause.isCause(cause) ? Cause.squash(cause) : cause
  if (!(error instanceof Error)) return "a defect that is no error"
  const name = error.name.replace(/[^\w.$/ -]/g, "").slice(0, nameCharsMax)
  const place = framePattern.exec(error.stack?.replace(error.message, "") ?? "")?.[1]
  return place === undefined ? name : `${name} at ${place}`
}
