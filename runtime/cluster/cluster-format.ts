/**
 * The format of a cluster: the newest form of states, log items and messages that every member can
 * read, and so the newest that any node may write. A format is a whole number from 1. A program
 * reads all formats up to its own. A rolling upgrade loses nothing, because a node writes a new
 * form only when no older program is a member (as cluster versions in CockroachDB).
 *
 * The registry's key `format` has the raised format, and any node may raise it:
 *
 * 1. A node raises the format when every member reads a newer one.
 * 2. Each node waits until the watch reports the raised format. The watch reports changes in their
 *    order, so the node then knows every member that joined before.
 * 3. The node writes the raised format as soon as all members that it knows read it.
 * 4. A program that joins later first writes its membership and then reads the key. If it cannot
 *    read the raised format, it does not start.
 */
import { firstFormat, StoreFormatUnsupported } from "../actor/index.ts"
import { runWithin } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import type { RegistryApi, RegistryEntry } from "../ports/index.ts"
import type { Members } from "./members.ts"
import type { ClusterClock } from "./member-entry.ts"

const key = "format"

const formatOf = ({ value }: RegistryEntry): number => {
  const format = Number(value ?? firstFormat)
  return Number.isSafeInteger(format) ? format : firstFormat
}

/** The failure of a program that cannot read the raised format; undefined if it can read it. */
export const formatFailure = (
  own: number,
  entry: RegistryEntry
): StoreFormatUnsupported | undefined => {
  const found = formatOf(entry)
  return found <= own
    ? undefined
    : new StoreFormatUnsupported({
      found: `states and messages of format ${found}`,
      supported: `formats 1 to ${own}`
    })
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

  /** Applies a change of the registry; `members` has observed the change before. */
  observe(entry: RegistryEntry): void {
    if (entry.key === key) this.raised = entry
    const raised = Math.min(formatOf(this.raised), this.own)
    if (raised > this.current && this.members.formatMax() >= raised) this.current = raised
  }

  /** Raises the format when every member reads a newer one. The next tick repeats a failed call. */
  raise(): void {
    const next = Math.min(this.members.formatMax(), this.own)
    if (this.isRaising || next <= formatOf(this.raised)) return
    this.isRaising = true
    const put = () => this.registry.put(key, String(next), this.raised.revision)
    // The watch reports the outcome, or that another node has raised it.
    runWithin(this.time, put, this.limits.callDeadlineMs, () => this.isRaising = false)
  }
}
