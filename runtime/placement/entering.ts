/**
 * How a node enters its cluster: it takes the key of its name, unless another process has it. One
 * that refreshes the key lives, and this node must not start. One that does not is waited for until
 * its membership has ended, or not at all when it ran on this machine and is known to be gone.
 */
import { Exit, Schema } from "effect"
import { runWithin } from "../deadline.ts"
import { StorageUnavailable } from "../errors.ts"
import type { RegistryApi } from "../ports/registry.ts"
import type { PlacementLimits } from "./limits.ts"
import { type ClusterClock, memberKey, memberText, readMember } from "./membership.ts"
import type { ProcessName } from "./process.ts"

/** Another process is the node of this name, and lives. */
export class NodeNameTaken extends Schema.TaggedError<NodeNameTaken>()("NodeNameTaken", {
  node: Schema.String
}) {}

export interface JoinOptions {
  readonly node: string
  readonly incarnation: string
  readonly process: ProcessName | undefined
  /** Whether a process is known to have ended. */
  readonly isGone: (other: ProcessName) => boolean
  readonly limits: PlacementLimits
  /** It has to wait for the end of another's membership; called once. */
  readonly onWait: () => void
  /** Whether nobody waits for it any more. */
  readonly stopped: () => boolean
}

/** The key as it was found the last time. */
interface Found {
  readonly incarnation: string
  readonly revision: number
}

/** The revision of the key, which is this node's now; or why it is not. */
export const joinCluster = async (
  registry: RegistryApi,
  time: ClusterClock,
  { incarnation, isGone, limits, node, onWait, process, stopped }: JoinOptions
): Promise<number | NodeNameTaken | StorageUnavailable> => {
  const key = memberKey(node)
  const { callDeadlineMs, enteringFailuresMax, retryMs, ttlMs } = limits
  const call = <A, E>(make: Parameters<typeof runWithin<A, E>>[1]): Promise<Exit.Exit<A, E>> =>
    new Promise((resolve) => runWithin(time, make, callDeadlineMs, resolve))
  // Until it is followed it takes no shards, as one that leaves.
  const value = memberText({ incarnation, leaving: true, process })
  let last: Found | undefined
  for (let failures = 0; failures < enteringFailuresMax && !stopped();) {
    const looked = await call(() => registry.get(key))
    if (Exit.isFailure(looked)) failures++
    else {
      const { revision } = looked.value
      const member = readMember(node, looked.value)
      // Written by a call that seemed to have failed.
      if (member?.incarnation === incarnation) return revision
      if (member === undefined || (member.process !== undefined && isGone(member.process))) {
        const put = await call(() => registry.put(key, value, revision, ttlMs))
        if (Exit.isSuccess(put)) return put.value
        failures++
      } else {
        const refreshed = member.incarnation === last?.incarnation && revision !== last.revision
        if (refreshed && !member.leaving) return new NodeNameTaken({ node })
        if (last === undefined) onWait()
        last = { incarnation: member.incarnation, revision }
      }
    }
    await new Promise<void>((resolve) => time.later(retryMs, resolve))
  }
  return new StorageUnavailable({ detail: "the registry does not answer" })
}
