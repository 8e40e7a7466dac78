/** How a membership is stored: its key `node.<name>`, its value, and the process that wrote it. */
import { Option, Schema } from "effect"
import { readFileSync, readlinkSync } from "node:fs"
import { firstFormat } from "../actor/index.ts"
import type { Timekeeping } from "../clock.ts"
import type { RegistryEntry } from "../ports/index.ts"
import type { NodeView } from "./placement.ts"

/** Names a process among all that run, so that its next start knows whether it has ended. */
export interface ProcessName {
  /** The machine's boot id, and the namespace of `pid`. */
  readonly host: string
  readonly pid: number
}

const hostName = (): string | undefined => {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`
  } catch {
    // Not Linux: other processes cannot be identified.
    return undefined
  }
}

const host = hostName()

/** This process; undefined where processes cannot be identified. */
export const thisProcess: ProcessName | undefined = host === undefined
  ? undefined
  : { host, pid: process.pid }

/** Whether a process has certainly ended. A process with this one's pid was an earlier one. */
export const isProcessGone = (other: ProcessName): boolean => {
  if (host === undefined || other.host !== host) return false
  if (other.pid === process.pid) return true
  try {
    process.kill(other.pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH"
  }
}

/** The clock of a node's placement. */
export interface ClusterClock extends Timekeeping {
  /** Time of a monotonic clock, from any origin. */
  readonly nowMs: () => number
}

const prefix = "node."

/** The key of a node's membership. */
export const memberKey = (node: string): string => prefix + node

/** The node whose membership is stored under a key. */
export const memberOf = (key: string): string | undefined =>
  key.startsWith(prefix) ? key.slice(prefix.length) : undefined

/** A node as its membership describes it. */
export interface ClusterMember extends NodeView {
  /** The newest format that its program reads. */
  readonly format: number
  readonly process?: ProcessName | undefined
  /** The name under which its process answers pings; undefined: it is no witness. */
  readonly witness?: string | undefined
  /** The processes of which a majority may remove the membership. */
  readonly witnesses: ReadonlyArray<string>
}

/** The membership as it is written. */
export const memberText = (
  { format, incarnation, leaving, process, witness, witnesses }: Omit<ClusterMember, "node">
): string => JSON.stringify({ incarnation, leaving, format, process, witness, witnesses })

const decodeMember = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({
  incarnation: Schema.String,
  leaving: Schema.optionalKey(Schema.Boolean),
  format: Schema.optionalKey(Schema.Int),
  process: Schema.optionalKey(Schema.Struct({ host: Schema.String, pid: Schema.Number })),
  witness: Schema.optionalKey(Schema.String),
  witnesses: Schema.optionalKey(Schema.Array(Schema.String))
})))

/** Decodes a membership; undefined when there is none, or it is unreadable. */
export const readMember = (node: string, { value }: RegistryEntry): ClusterMember | undefined => {
  const member = Option.getOrUndefined(decodeMember(value))
  return member && { leaving: false, format: firstFormat, witnesses: [], ...member, node }
}
