/** Which process a node is, so that one started after it on the same machine can tell its end. */
import { readFileSync, readlinkSync } from "node:fs"

export interface ProcessName {
  /** This start of the machine, and the namespace in which `pid` counts. */
  readonly host: string
  readonly pid: number
}

const hostName = (): string | undefined => {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`
  } catch {
    // Not Linux: nothing is known of other processes.
    return undefined
  }
}

const host = hostName()

/** This process; undefined where that cannot be said. */
export const thisProcess: ProcessName | undefined = host === undefined
  ? undefined
  : { host, pid: process.pid }

/** Whether a process has ended for certain. One of this process's own number came before it. */
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
