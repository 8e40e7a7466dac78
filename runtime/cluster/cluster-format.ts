/**
 * The format of a cluster: the newest form of states, log items and messages that every member can
 * read, and so the newest that any node may write. A format is a whole number from 1; a program
 * reads all formats up to its own. A rolling upgrade loses nothing, because a new
 * form is written only when no older program is left (as cluster versions in CockroachDB).
 *
 * The registry's key `format` has the raised format. A node raises it when every member reads more.
 * It writes the new form once the watch has reported the raised key and every member known then
 * reads it. The watch is ordered, so each earlier member is known. A program that joins later
 * reads the key after it has written its membership, and does not start when it cannot read it.
 */
import { firstFormat, StoreFormatUnsupported } from "../actor/index.ts"
import { runWithin } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import type { RegistryApi, RegistryEntry } from "../ports/index.ts"
import type { Members } from "./members.ts"
import type { ClusterClock } from "./membership.ts"

const key = "format"

const formatOf = ({ value }: RegistryEntry): number => {
  const format = Number(value ?? firstFormat)
  return Number.isSafeInteger(format) ? format : firstFormat
}

/** Why a program of format `own` must not join a cluster with this entry; undefined if it may. */
export const formatRefusal = (
  own: number,
  entry: RegistryEntry
): StoreFormatUnsupported | undefined => {
  const found = formatOf(entry)
  return found <= own
    ? undefined
    : new StoreFormatUnsupported({ found: `format ${found}`, supported: `formats 1 to ${own}` })
}

/** Reads the raised format of a cluster. */
export const readFormat = (registry: RegistryApi) => registry.get(key)

export class ClusterFormat {
  /** The newest format that this node may write. */
  current = firstFormat
  private readonly own: number
  private readonly members: Members
  private readonly registry: RegistryApi
  private readonly time: ClusterClock
  private readonly limits: PlacementLimits
  private raised: RegistryEntry = { key, value: undefined, revision: 0 }
  private isRaising = false

  constructor(
    own: number,
    members: Members,
    registry: RegistryApi,
    time: ClusterClock,
    limits: PlacementLimits
  ) {
    this.own = own
    this.members = members
    this.registry = registry
    this.time = time
    this.limits = limits
  }

  /** The registry reports a change, after `members` has observed it. */
  observe(entry: RegistryEntry): void {
    if (entry.key === key) this.raised = entry
    const raised = Math.min(formatOf(this.raised), this.own)
    if (raised > this.current && this.members.formatMax() >= raised) this.current = raised
  }

  /** Raises the format when every member reads more. A failed call is repeated at the next tick. */
  raise(): void {
    const next = Math.min(this.members.formatMax(), this.own)
    if (this.isRaising || next <= formatOf(this.raised)) return
    this.isRaising = true
    const put = () => this.registry.put(key, String(next), this.raised.revision)
    // The watch reports the outcome, or that another node has raised it.
    runWithin(this.time, put, this.limits.callDeadlineMs, () => this.isRaising = false)
  }
}
