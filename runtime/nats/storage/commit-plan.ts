/** Whether a commit may be written upon what is known of its actor. */
import { keyOf, LogConflict, RevisionConflict } from "../../actor/index.ts"
import { markerTtl } from "../../limits.ts"
import type { Commit, CommitOutcome } from "../../ports/index.ts"
import { expecting, type StreamMessage } from "../connection/index.ts"
import { type ActorKeys, actorKeys, type BucketPlace } from "../stream/index.ts"
import { type ActorEntry, CAP, CLEARED, COMMIT, FLOOR, HEAD, type Pack, REVISION, VOID,
  written } from "./actor-entry.ts"
import { type Clearing, nothingCleared, type Torn } from "./log-clearer.ts"

/** A commit with all that its messages are made of. */
export interface Work {
  readonly commit: Commit
  readonly id: string
  /** Its appended items. */
  readonly packs: ReadonlyArray<Pack>
  /** What becomes of the items it removes. */
  readonly clearing: Clearing
}

export interface Plan {
  readonly messages: ReadonlyArray<StreamMessage>
  /** The actor once they are kept, the first of them with this sequence. */
  readonly after: (first: number) => ActorEntry
}

const MARKER = "KV-Operation: DEL\r\n"

const FADING = `${MARKER}Nats-TTL: ${markerTtl}\r\n`

/** What becomes of timers, at most one message for each. */
const timerMessages = (
  place: BucketPlace,
  keys: ActorKeys,
  commit: Commit
): ReadonlyArray<StreamMessage> => {
  const { state, timer, signals } = commit
  if (state !== null && timer === undefined && signals.length === 0) return []
  const times = new Map<string, number | null>()
  for (const { address, atMs } of signals) times.set(actorKeys(place, address).timer, atMs)
  if (state === null) times.set(keys.timer, null)
  else if (timer !== undefined) times.set(keys.timer, timer)
  return Array.from(times, ([subject, atMs]) =>
    atMs === null
      ? { subject, data: "", headers: FADING }
      : { subject, data: String(atMs), headers: "" })
}

/** The number that the log ends with after the commit. */
export const headAfter = (entry: ActorEntry, commit: Commit): number =>
  Math.max(
    entry.head,
    commit.append.at(-1)?.n ?? 0,
    commit.state === undefined ? 0 : commit.head
  )

/** Headers of a state record. */
const recordHeaders = (entry: ActorEntry, id: string, head: number, revision: number): string => {
  const { cleared, floor, gone } = entry
  let headers = `${expecting(entry.seq)}${COMMIT}: ${id}\r\n${HEAD}: ${head}\r\n`
  if (revision > 0) headers += `${REVISION}: ${revision}\r\n`
  if (floor > 0) headers += `${FLOOR}: ${floor}\r\n`
  if (cleared > 0) headers += `${CLEARED}: ${cleared}\r\n`
  if (gone !== undefined) {
    headers += `${VOID}: ${gone.after}${gone.before === undefined ? "" : `:${gone.before}`}\r\n`
  }
  return headers
}

/** The state's record with the commit's text, or as it was. */
const recordMessage = (
  keys: ActorKeys,
  entry: ActorEntry,
  { state }: Commit,
  id: string,
  head: number
): StreamMessage => {
  const text = state ?? entry.text
  const headers = recordHeaders(entry, id, head, typeof state === "string" ? 0 : entry.revision)
  return {
    subject: keys.state,
    data: text ?? "",
    headers: text === undefined ? headers + MARKER : headers
  }
}

const withHeaders = (message: StreamMessage, headers: string): StreamMessage => ({
  ...message,
  headers: headers + message.headers
})

/**
 * Lets the first of these messages say that nothing was appended since the entry was loaded, as
 * the last owner may have done so without touching the state's key.
 */
const checked = (
  keys: ActorKeys,
  entry: ActorEntry,
  messages: ReadonlyArray<StreamMessage>
): ReadonlyArray<StreamMessage> => {
  // Whoever appends has written the state's key first.
  if (entry.seq === 0 && entry.nextSeq === 0) return messages
  const next = `${keys.log}${entry.head + 1}`
  const [first, ...rest] = messages
  if (first === undefined) {
    return [{ subject: next, data: "", headers: FADING + expecting(entry.nextSeq) }]
  }
  const own = first.subject === next
  return [withHeaders(first, expecting(entry.nextSeq, own ? undefined : next)), ...rest]
}

/** The removal of an actor: a mark, which all older items of its log are below. */
const removal = (
  place: BucketPlace,
  keys: ActorKeys,
  entry: ActorEntry,
  commit: Commit,
  id: string
): Plan => {
  const others = timerMessages(place, keys, commit)
  const fades = entry.head === 0 && entry.floor === 0 && entry.gone === undefined
  const mark: StreamMessage = {
    subject: keys.state,
    data: "",
    headers: `${expecting(entry.seq)}${COMMIT}: ${id}\r\n${fades ? FADING : MARKER}`
  }
  const messages = [mark, ...entry.claimed ? others : checked(keys, entry, others)]
  return {
    messages,
    after: (first) => ({
      ...entry,
      seq: first,
      revision: 0,
      text: undefined,
      head: 0,
      floor: fades ? 0 : first,
      cleared: 0,
      isFurther: true,
      gone: undefined,
      claimed: true,
      lastSeq: first + messages.length - 1
    })
  }
}

/** Whether the removed actor may have left something that a purge must take. */
export const leavesLog = (entry: ActorEntry): boolean => entry.floor > 0

/** Numbers left out that a commit which was broken off may have used. */
const leftOut = (entry: ActorEntry, { append }: Commit, head: number): ReadonlyArray<Torn> => {
  if (entry.gone === undefined) return []
  const used = new Set(append.map(({ n }) => n))
  return Array.from({ length: head - entry.head }, (_, at) => entry.head + 1 + at)
    .filter((n) => !used.has(n))
    .map((n) => ({ n, last: n, rest: undefined }))
}

/**
 * What becomes of the messages that lose items, and of earlier marks. A server that is killed has a
 * message again whose place a mark took that has faded since: so only where nothing counts any more
 * may it fade.
 */
const clearingMessages = (
  { log }: ActorKeys,
  { cleared, faded, torn }: Clearing
): ReadonlyArray<StreamMessage> => [
  ...torn.map(({ last, n, rest }) => ({
    subject: log + n,
    ...rest === undefined
      ? { data: "", headers: last <= cleared ? FADING : MARKER }
      : written(rest)
  })),
  ...faded.map((n) => ({ subject: log + n, data: "", headers: FADING }))
]

const itemMessages = (
  { log }: ActorKeys,
  packs: ReadonlyArray<Pack>,
  firstHeaders: string
): ReadonlyArray<StreamMessage> =>
  packs.map((pack, at) => {
    const { data, headers } = written(pack)
    return { subject: log + pack.n, data, headers: at === 0 ? firstHeaders + headers : headers }
  })

/** `rewrite`: the state's record is written though the commit brings none. */
export const planOf = (
  place: BucketPlace,
  before: ActorEntry,
  { clearing, commit, id, packs }: Work,
  rewrite = !before.claimed
): Plan => {
  const { cleared, isFurther } = clearing
  const entry: ActorEntry = { ...before, cleared, isFurther }
  const keys = actorKeys(place, commit.address)
  const { state } = commit
  if (state === null) return removal(place, keys, entry, commit, id)
  const head = headAfter(entry, commit)
  const others: ReadonlyArray<StreamMessage> = [
    ...itemMessages(keys, packs, `${COMMIT}: ${id}\r\n`),
    ...clearingMessages(keys, {
      ...clearing,
      torn: [...clearing.torn, ...leftOut(entry, commit, head)]
    }),
    ...timerMessages(place, keys, commit)
  ]
  if (state === undefined && !rewrite) {
    const [first, ...rest] = others
    const messages = first === undefined
      ? []
      : [withHeaders(first, expecting(entry.seq, keys.state)), ...rest]
    const lastSeq = (from: number) => Math.max(entry.lastSeq, from + messages.length - 1)
    return { messages, after: (from) => ({ ...entry, head, lastSeq: lastSeq(from) }) }
  }
  const record = recordMessage(keys, entry, commit, id, head)
  const messages = [record, ...entry.claimed ? others : checked(keys, entry, others)]
  return {
    messages,
    after: (first) => ({
      ...entry,
      seq: first,
      revision: typeof state === "string" ? first : entry.revision,
      text: undefined,
      head,
      gone: entry.gone === undefined
        ? undefined
        : { ...entry.gone, before: entry.gone.before ?? first },
      claimed: true,
      lastSeq: first + messages.length - 1
    })
  }
}

/**
 * The first step of a commit that is too large for one batch: items above the head do not count
 * from now on. The entry must not be claimed, so that it has its text.
 */
export const capPlan = (place: BucketPlace, entry: ActorEntry, { commit, id }: Work): Plan => {
  const nothing: Commit = {
    ...commit,
    state: undefined,
    append: [],
    remove: [],
    timer: undefined,
    signals: []
  }
  const clearing = nothingCleared(entry)
  const plan = planOf(place, entry, { commit: nothing, id, packs: [], clearing })
  const [record, ...rest] = plan.messages
  if (record === undefined) return plan
  return { ...plan, messages: [withHeaders(record, `${CAP}: ${entry.head}\r\n`), ...rest] }
}

/** The second step: the items, in batches of so many messages. */
export const itemPlans = (
  place: BucketPlace,
  capped: ActorEntry,
  { commit, packs }: Work,
  messagesMax: number
): ReadonlyArray<ReadonlyArray<StreamMessage>> => {
  const keys = actorKeys(place, commit.address)
  const plans: Array<ReadonlyArray<StreamMessage>> = []
  for (let from = 0; from < packs.length; from += messagesMax) {
    const some = packs.slice(from, from + messagesMax)
    plans.push(itemMessages(keys, some, expecting(capped.seq, keys.state)))
  }
  return plans
}

/** The last step: everything else, and the items count. */
export const uncapPlan = (
  place: BucketPlace,
  entry: ActorEntry,
  capped: ActorEntry,
  work: Work
): Plan => {
  const head = headAfter(entry, work.commit)
  return planOf(
    place,
    { ...capped, text: entry.text, head },
    { ...work, commit: { ...work.commit, append: [], head }, packs: [] },
    true
  )
}

/* What one commit writes, and what its actor is like when that is kept. */

type Conflict = RevisionConflict | LogConflict

export const conflictOf = (entry: ActorEntry, commit: Commit): Conflict | undefined => {
  const { address, append, expected, head, state } = commit
  const key = keyOf(address)
  if (expected !== entry.revision) {
    return new RevisionConflict({ key, expected, actual: entry.revision })
  }
  if (state === null) return undefined
  const first = append[0]?.n
  if (first !== undefined && first <= entry.head) return new LogConflict({ key, item: first })
  // Decided without knowing of items that are there.
  if (state !== undefined && head < entry.head) return new LogConflict({ key, item: head + 1 })
  if (state === undefined && first !== undefined && first > entry.head + 1) {
    return new LogConflict({ key, item: first })
  }
  return undefined
}

/** Another activation has written the state's key, if only to say that it is there. */
export const overtaken = (
  known: ActorEntry,
  fresh: ActorEntry,
  commit: Commit
): Conflict | undefined =>
  conflictOf(fresh, commit) ??
    // The key's mark may have faded, or been purged, after a removal.
    (fresh.seq === known.seq || fresh.seq === 0 ? undefined : new RevisionConflict({
      key: keyOf(commit.address),
      expected: commit.expected,
      actual: fresh.revision
    }))

export const conflict = (conflict: Conflict): CommitOutcome => ({ _tag: "Conflict", conflict })

/**
 * Whether a commit of which no trace is left may have been kept, and written over by who has the
 * actor now. Items stay where they are, and a claim of the state's record keeps its revision: so
 * where the revision is what it was, nothing was kept.
 */
export const mayBeUnder = (
  known: ActorEntry,
  fresh: ActorEntry,
  { append, state }: Commit
): boolean => typeof state === "string" && append.length === 0 && fresh.revision !== known.revision

/** `revision`: of the actor once the commit was kept. */
export const committed = ({ expected, state }: Commit, revision: number): CommitOutcome => ({
  _tag: "Committed",
  revision: state === null ? 0 : state === undefined ? expected : revision
})
