/** An actor after a commit that the answering node has recorded, and the ways to others. */
import type { Address, LogItem, RecordedCommit } from "../../../../runtime/index.ts"
import { commitName, pastPath } from "../cluster-paths.ts"

/** The recorded commits of an actor, and who has recorded them. */
export interface RecordedCommits {
  readonly address: Address
  readonly node: string
  /** Names this start of the node. */
  readonly startId: string
  /** ms since the epoch. */
  readonly sinceMs: number
  /** Ascending; the oldest leave. */
  readonly commits: ReadonlyArray<RecordedCommit>
}

/** An actor after one of these commits. */
export interface PastMoment {
  readonly commit: RecordedCommit
  /** Its position among the recorded commits, from 0. */
  readonly at: number
  /** The last items of its log; undefined where the actor was removed since, with its log. */
  readonly log: ReadonlyArray<LogItem> | undefined
}

/** The name of a commit in URIs. */
export const nameOf = ({ startId }: RecordedCommits, { seq }: RecordedCommit): string =>
  commitName(startId, seq)

/** The path of the actor after a commit. */
export const pathOf = (recorded: RecordedCommits, commit: RecordedCommit): string =>
  pastPath(recorded.address, nameOf(recorded, commit))

/** The node in the name of one of its commits, or of one of its starts. */
export const nodeIn = (name: string): string => name.slice(0, name.indexOf("."))

const removes = ({ changesState, state }: RecordedCommit): boolean => changesState && state === null

/**
 * The commit of this name, and whether the log that it left may still be there: a later commit has
 * not removed the actor. Undefined where this start of the node has no such commit, or no longer.
 */
export const momentOf = (
  recorded: RecordedCommits,
  name: string
): Omit<PastMoment, "log"> & { readonly hasLog: boolean } | undefined => {
  const { commits } = recorded
  const at = commits.findIndex((one) => nameOf(recorded, one) === name)
  const commit = commits[at]
  if (commit === undefined) return undefined
  return { commit, at, hasLog: !commits.slice(at + 1).some(removes) }
}

/** What a commit has done, in words. */
export const changeText = (commit: RecordedCommit): string => {
  const { appended, changesState, head, removed, state } = commit
  const items = (count: number): string => `${count} item${count === 1 ? "" : "s"}`
  const changes = [
    ...removes(commit) ? ["removed the actor"] : [],
    ...changesState && state ? [`wrote the state, ${state.chars} characters`] : [],
    ...appended.length > 0 ? [`appended ${items(appended.length)}, up to ${head}`] : [],
    ...removed.length > 0 ? [`removed ${items(removed.length)} of the log`] : []
  ]
  return changes.length === 0 ? "changed timers only" : changes.join("; ")
}

/** What a commit has done to the state, for documents. */
export const stateChange = (commit: RecordedCommit): "written" | "removed" | undefined =>
  commit.changesState ? removes(commit) ? "removed" : "written" : undefined
