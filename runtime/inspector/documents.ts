/**
 * What the inspector shows, as data: the JSON interface answers it as it is, and the pages are made
 * of it. Everything is read; nothing changes an actor.
 */
import { Effect } from "effect"
import type { Inspection } from "../activation/index.ts"
import { type Address, address, fromKey, isActorId, shardOf } from "../actor/index.ts"
import type { SystemApi } from "../system.ts"
import type { RecordedCommit, RecordedMessage, Recorder } from "../recording/index.ts"

/** Actors of one page, messages of one page, items of a log that are shown. */
const idsMax = 100
const messagesMax = 200
const actorMessagesMax = 50
const changedMax = 20
const itemsMax = 50
/** Characters of the log that are read at once, and of one item that is shown. */
const readCharsMax = 1024 * 1024
const itemCharsMax = 4 * 1024

/** What the documents are made from. */
export interface InspectorSource {
  readonly system: SystemApi
  readonly recorder: Recorder
  /** Where the actors are kept, for people. */
  readonly store: string
}

/** The request names something that is not there. */
export class NotInspectable extends Error {
  override readonly name = "NotInspectable"
}

export interface KindSummary {
  readonly kind: string
  readonly inMemory: number
  /** Messages without a reply. */
  readonly waiting: number
  readonly decisions: number
  readonly refusals: number
  readonly restarts: number
}

export interface NodeDocument {
  readonly store: string
  /** Since when messages and commits are recorded, ms since the epoch. */
  readonly recordedSinceMs: number
  /** This node, and all of its cluster. */
  readonly node: string
  readonly nodes: ReadonlyArray<string>
  readonly kinds: ReadonlyArray<KindSummary>
  /** Timers in memory, and those that are due. */
  readonly timers: number
  readonly timersDue: number
  readonly commits: number
  /** The median of the last commits, ms; undefined before the first. */
  readonly commitMs: number | undefined
  readonly quarantined: ReadonlyArray<Address & { readonly reason: string }>
  /** The actors with the last commits of this node. */
  readonly changed: ReadonlyArray<Address>
  readonly messages: ReadonlyArray<RecordedMessage>
}

export const nodeDocument = ({ recorder, store, system }: InspectorSource): NodeDocument => {
  const { activations, metrics, quarantined, timers, timersDue } = system.snapshot()
  const { nodes, self } = system.cluster()
  return {
    store,
    recordedSinceMs: recorder.startedMs,
    node: self,
    nodes: nodes.map(({ node }) => node),
    kinds: [...activations].map(([kind, { active, queued }]) => {
      const { decisions, refusals, restarts } = metrics.of(kind)
      return { kind, inMemory: active, waiting: queued, decisions, refusals, restarts }
    }),
    timers,
    timersDue,
    commits: metrics.commits.commits,
    commitMs: metrics.commits.recentMs.quantile(0.5),
    quarantined: quarantined.map(({ address: { id, kind }, reason }) => ({ kind, id, reason })),
    changed: recorder.changedActors(changedMax).map(fromKey),
    messages: recorder.messagesOf({}, changedMax)
  }
}

export interface MessagesDocument {
  /** Only messages to actors of this kind; undefined: all. */
  readonly kind: string | undefined
  readonly kinds: ReadonlyArray<string>
  readonly messages: ReadonlyArray<RecordedMessage>
}

const kindsOf = ({ system }: InspectorSource): ReadonlyArray<string> => [
  ...system.snapshot().activations.keys()
]

const assertKind = (source: InspectorSource, kind: string): void => {
  const kinds = kindsOf(source)
  if (kinds.includes(kind)) return
  throw new NotInspectable(`the node has no actors of the kind ${kind}: it has ${kinds.join(", ")}`)
}

export const messagesDocument = (
  source: InspectorSource,
  kind: string | undefined
): MessagesDocument => {
  if (kind !== undefined) assertKind(source, kind)
  const about = kind === undefined ? {} : { kind }
  const messages = source.recorder.messagesOf(about, messagesMax)
  return { kind, kinds: kindsOf(source), messages }
}

export interface KindDocument {
  readonly kind: string
  /** Of actors that have a record, ascending. */
  readonly ids: ReadonlyArray<string>
  /** After which id the next page begins; undefined at the end. */
  readonly next: string | undefined
}

export const kindDocument = async (
  source: InspectorSource,
  kind: string,
  after: string | undefined
): Promise<KindDocument> => {
  assertKind(source, kind)
  const ids = await Effect.runPromise(source.system.scan(kind, after, idsMax))
  return { kind, ids, next: ids.length < idsMax ? undefined : ids.at(-1) }
}

/** What of an actor's past is shown, as its query names it. */
export interface MomentQuery {
  /** The number of a recorded commit. */
  readonly commit?: number
  /** The number of a log item: the log up to it. */
  readonly item?: number
}

/** An actor now, after a recorded commit, or its log up to an item. */
export type Moment =
  | { readonly _tag: "Now" }
  | { readonly _tag: "Commit"; readonly commit: RecordedCommit; readonly at: number }
  | { readonly _tag: "Item"; readonly item: number }

/** The ways from a moment to others; undefined where there is none. */
export interface MomentLinks {
  readonly first: MomentQuery | undefined
  readonly previous: MomentQuery | undefined
  readonly next: MomentQuery | undefined
  /** Whether it is another moment than now. */
  readonly isPast: boolean
}

export interface ShownItem {
  readonly n: number
  /** As it is stored, cut where it is too long. */
  readonly value: string
  /** When its commit was recorded, ms since the epoch; undefined for an earlier one. */
  readonly atMs: number | undefined
}

export interface ActorDocument extends Address {
  readonly shard: number
  /** The node that owns it; undefined while none does. */
  readonly node: string | undefined
  readonly moment: Moment
  readonly links: MomentLinks
  readonly recordedCommits: number
  readonly recordedSinceMs: number
  /** The actor now, whatever moment is shown. */
  readonly inspection: Inspection
  /** The state of the moment; undefined where it is not known, or too long; null: no record. */
  readonly state: string | null | undefined
  readonly stateChars: number | undefined
  /** The state before it, where that was recorded. */
  readonly stateBefore: string | undefined
  /** Of the moment, ms since the epoch; null: none; undefined: not known. */
  readonly timerMs: number | null | undefined
  /** The last item of the moment. */
  readonly head: number
  /** The last items up to it, ascending. */
  readonly log: ReadonlyArray<ShownItem>
  /** The last messages up to the moment, the newest first. */
  readonly messages: ReadonlyArray<RecordedMessage>
}

/** The log items that were there before the first recorded commit. */
const earlierItems = (commits: ReadonlyArray<RecordedCommit>, head: number): number => {
  const [first] = commits
  return first === undefined ? head : first.head - first.appended.length
}

const momentOf = (
  { commit, item }: MomentQuery,
  commits: ReadonlyArray<RecordedCommit>,
  head: number
): Moment => {
  if (commit !== undefined) {
    const at = commits.findIndex(({ seq }) => seq === commit)
    const found = commits[at]
    if (found !== undefined) return { _tag: "Commit", commit: found, at }
    throw new NotInspectable(
      `commit ${commit} is not recorded, or no longer: open the actor as it is now`
    )
  }
  if (item === undefined) return { _tag: "Now" }
  const found = commits.findIndex(({ appended }) => appended.includes(item))
  const recorded = commits[found]
  if (recorded !== undefined) return { _tag: "Commit", commit: recorded, at: found }
  if (item >= 1 && item <= head) return { _tag: "Item", item }
  throw new NotInspectable(`the log has no item ${item}: its last one is ${head}`)
}

const linksOf = (
  moment: Moment,
  commits: ReadonlyArray<RecordedCommit>,
  head: number
): MomentLinks => {
  const earlier = earlierItems(commits, head)
  const toItem = (item: number): MomentQuery | undefined => item >= 1 ? { item } : undefined
  const toCommit = (at: number): MomentQuery | undefined => {
    const found = commits[at]
    return found === undefined ? undefined : { commit: found.seq }
  }
  const first = toItem(Math.min(1, earlier)) ?? toCommit(0)
  if (moment._tag === "Commit") {
    const previous = moment.at === 0 ? toItem(earlier) : toCommit(moment.at - 1)
    return { first, previous, next: toCommit(moment.at + 1), isPast: true }
  }
  if (moment._tag === "Item") {
    const { item } = moment
    const next = item < earlier ? toItem(item + 1) : toCommit(0)
    return { first, previous: toItem(item - 1), next, isPast: true }
  }
  // Now is as the last commit, so the way back leads before it.
  const previous = commits.length > 1
    ? toCommit(commits.length - 2)
    : toItem(commits.length === 1 ? earlier : head - 1)
  return { first: previous && first, previous, next: undefined, isPast: false }
}

const itemsUpTo = async (
  { system }: InspectorSource,
  of: Address,
  head: number,
  commits: ReadonlyArray<RecordedCommit>
): Promise<ReadonlyArray<ShownItem>> => {
  const shown: Array<ShownItem> = []
  let next = Math.max(1, head - itemsMax + 1)
  // A read ends after so many characters: what is shown of its items is cut before the next one.
  while (next <= head) {
    const items = await Effect.runPromise(system.read(of, next, head - next + 1, readCharsMax))
    for (const { n, value } of items) {
      const text = value.length > itemCharsMax ? `${value.slice(0, itemCharsMax)}…` : value
      const atMs = commits.find(({ appended }) => appended.includes(n))?.atMs
      if (n <= head) shown.push({ n, value: text, atMs })
    }
    next = (items.at(-1)?.n ?? head) + 1
  }
  return shown
}

type MomentState = Pick<
  ActorDocument,
  "state" | "stateBefore" | "stateChars" | "timerMs" | "head"
>

const stateAt = (
  moment: Moment,
  commits: ReadonlyArray<RecordedCommit>,
  inspection: Inspection
): MomentState => {
  const textAt = (at: number) => commits.at(at)?.state?.text
  if (moment._tag === "Now") {
    const { head, state, stateChars, timerMs = null } = inspection
    const isLast = state !== undefined && textAt(-1) === state
    const stateBefore = commits.length > 1 && isLast ? textAt(-2) : textAt(-1)
    const shown = stateChars === undefined ? null : state
    return { state: shown, stateChars, stateBefore, timerMs, head }
  }
  if (moment._tag === "Item") {
    const unknown = { state: undefined, stateChars: undefined, stateBefore: undefined }
    return { ...unknown, timerMs: undefined, head: moment.item }
  }
  const { at, commit: { head, state, timerMs } } = moment
  return {
    state: state === null ? null : state?.text,
    stateChars: state?.chars,
    stateBefore: at === 0 ? undefined : textAt(at - 1),
    timerMs,
    head
  }
}

/** The number of the last message that had come by then. */
const lastMessageOf = (moment: Moment): number => {
  if (moment._tag === "Now") return Infinity
  // An item that is no part of a recorded commit is older than all recorded messages.
  return moment._tag === "Item" ? 0 : moment.commit.messageSeq
}

/** One actor. Throws {@link NotInspectable}, and the failures of the node and the store. */
export const actorDocument = async (
  source: InspectorSource,
  kind: string,
  id: string,
  query: MomentQuery
): Promise<ActorDocument> => {
  assertKind(source, kind)
  if (!isActorId(id)) throw new NotInspectable("this is no id of an actor: copy it from the list")
  const of = address(kind, id)
  const { recorder, system } = source
  const inspection = await Effect.runPromise(system.inspect(of))
  const commits = recorder.commitsOf(of)
  const moment = momentOf(query, commits, inspection.head)
  const state = stateAt(moment, commits, inspection)
  const messages = recorder.messagesOf(of, actorMessagesMax)
  const lastMessage = lastMessageOf(moment)
  return {
    kind,
    id,
    shard: shardOf(of),
    node: system.cluster().owners[shardOf(of)],
    moment,
    links: linksOf(moment, commits, inspection.head),
    recordedCommits: commits.length,
    recordedSinceMs: recorder.startedMs,
    inspection,
    ...state,
    log: await itemsUpTo(source, of, state.head, commits),
    messages: messages.filter(({ seq }) => seq <= lastMessage)
  }
}
