/** Whether a commit may be written upon what is known of its actor. */
import { keyOf, LogConflict, RevisionConflict } from "../../actor/index.ts"
import { markerTtl } from "../../limits.ts"
import { type Commit, type CommitOutcome, noSignals } from "../../ports/index.ts"
import { type ActorKeys, actorKeys, type Bucket, expectSequence,
  type StreamMessage } from "../stream/index.ts"
import { type ActorEntry, CAP, COMMIT, encodeLogMessage, FLOOR, HEAD, type LogMessage,
  LOW_WATERMARK, REVISION, VOID } from "./actor-entry.ts"
import { type LogTrim, noTrim, type TrimmedMessage } from "./log-clearer.ts"

/** A commit with all that its messages are made of. */
export interface CommitWork {
  readonly commit: Commit
  readonly id: string
  /** Its appended items. */
  readonly logMessages: ReadonlyArray<LogMessage>
  /** What becomes of the items it removes. */
  readonly clearing: LogTrim
}

export interface CommitPlan {
  readonly messages: ReadonlyArray<StreamMessage>
  /** Index of the message of the commit's first signal; its others follow. */
  readonly signalsAt: number
  /** The actor once they are kept, the first of them with this sequence. */
  readonly after: (first: number) => ActorEntry
}

const MARKER = "KV-Operation: DEL\r\n"

const FADING = `${MARKER}Nats-TTL: ${markerTtl}\r\n`

const noMessages: ReadonlyArray<StreamMessage> = []

/** The actor's own timer. */
const timerMessages = (
  keys: ActorKeys,
  { state, timer }: Commit
): ReadonlyArray<StreamMessage> => {
  if (state === null || timer === null) return [{ subject: keys.timer, data: "", headers: FADING }]
  return timer === undefined
    ? noMessages
    : [{ subject: keys.timer, data: String(timer), headers: "" }]
}

/**
 * The signals of the commit, as the last messages of a plan but for the removal of the signal that
 * it consumes: that one fails the batch when another signal has replaced it. It has the only
 * expectation of its message, so no plan begins with it.
 */
const signalMessages = (
  place: Bucket,
  keys: ActorKeys,
  { consumedSignal, signals }: Commit
): ReadonlyArray<StreamMessage> => {
  if (consumedSignal === undefined && signals.length === 0) return noMessages
  const messages: Array<StreamMessage> = signals.map(({ address, atMs }) => ({
    subject: actorKeys(place, address).signal,
    data: String(atMs),
    headers: ""
  }))
  if (consumedSignal !== undefined) {
    const headers = FADING + expectSequence(consumedSignal)
    messages.push({ subject: keys.signal, data: "", headers })
  }
  return messages
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
  const { lowWatermark, floor, voided } = entry
  let headers = `${expectSequence(entry.seq)}${COMMIT}: ${id}\r\n${HEAD}: ${head}\r\n`
  if (revision > 0) headers += `${REVISION}: ${revision}\r\n`
  if (floor > 0) headers += `${FLOOR}: ${floor}\r\n`
  if (lowWatermark > 0) headers += `${LOW_WATERMARK}: ${lowWatermark}\r\n`
  if (voided !== undefined) {
    headers += `${VOID}: ${voided.after}${
      voided.before === undefined ? "" : `:${voided.before}`
    }\r\n`
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
    return [{ subject: next, data: "", headers: FADING + expectSequence(entry.nextSeq) }]
  }
  const own = first.subject === next
  return [withHeaders(first, expectSequence(entry.nextSeq, own ? undefined : next)), ...rest]
}

/**
 * Lets the first of these messages say that nobody has written the state's key. Signals alone get a
 * message before them that says so, and fades.
 */
const fencedByState = (
  keys: ActorKeys,
  entry: ActorEntry,
  [first, ...rest]: ReadonlyArray<StreamMessage>,
  signals: ReadonlyArray<StreamMessage>
): ReadonlyArray<StreamMessage> => {
  const fence = expectSequence(entry.seq, keys.state)
  if (first !== undefined) return [withHeaders(first, fence), ...rest]
  return signals.length === 0 ? [] : [{ subject: keys.fence, data: "", headers: FADING + fence }]
}

/** The removal of an actor: a mark, which all older items of its log are below. */
const removal = (
  place: Bucket,
  keys: ActorKeys,
  entry: ActorEntry,
  commit: Commit,
  id: string
): CommitPlan => {
  const others = timerMessages(keys, commit)
  const signals = signalMessages(place, keys, commit)
  const fades = entry.head === 0 && entry.floor === 0 && entry.voided === undefined
  const mark: StreamMessage = {
    subject: keys.state,
    data: "",
    headers: `${expectSequence(entry.seq)}${COMMIT}: ${id}\r\n${fades ? FADING : MARKER}`
  }
  const own = [mark, ...entry.isFenced ? others : checked(keys, entry, others)]
  const messages = [...own, ...signals]
  return {
    messages,
    signalsAt: own.length,
    after: (first) => ({
      ...entry,
      seq: first,
      revision: 0,
      text: undefined,
      head: 0,
      floor: fades ? 0 : first,
      lowWatermark: 0,
      mayAdvance: true,
      voided: undefined,
      isFenced: true,
      lastSeq: first + messages.length - 1
    })
  }
}

/** Whether the removed actor may have left something that a purge must take. */
export const needsPurge = (entry: ActorEntry): boolean => entry.floor > 0

/** Numbers left out that a commit which was broken off may have used. */
const leftOut = (
  entry: ActorEntry,
  { append }: Commit,
  head: number
): ReadonlyArray<TrimmedMessage> => {
  if (entry.voided === undefined) return []
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
  { lowWatermark, faded, trimmed }: LogTrim
): ReadonlyArray<StreamMessage> => [
  ...trimmed.map(({ last, n, rest }) => ({
    subject: log + n,
    ...rest === undefined
      ? { data: "", headers: last <= lowWatermark ? FADING : MARKER }
      : encodeLogMessage(rest)
  })),
  ...faded.map((n) => ({ subject: log + n, data: "", headers: FADING }))
]

const itemMessages = (
  { log }: ActorKeys,
  logMessages: ReadonlyArray<LogMessage>,
  firstHeaders: string
): ReadonlyArray<StreamMessage> =>
  logMessages.map((pack, at) => {
    const { data, headers } = encodeLogMessage(pack)
    return { subject: log + pack.n, data, headers: at === 0 ? firstHeaders + headers : headers }
  })

/** `rewrite`: the state's record is written though the commit brings none. */
export const planCommit = (
  place: Bucket,
  before: ActorEntry,
  { clearing, commit, id, logMessages }: CommitWork,
  rewrite = !before.isFenced
): CommitPlan => {
  const { lowWatermark, mayAdvance } = clearing
  const entry: ActorEntry = { ...before, lowWatermark, mayAdvance }
  const keys = actorKeys(place, commit.address)
  const { state } = commit
  if (state === null) return removal(place, keys, entry, commit, id)
  const head = headAfter(entry, commit)
  const others: ReadonlyArray<StreamMessage> = [
    ...itemMessages(keys, logMessages, `${COMMIT}: ${id}\r\n`),
    ...clearingMessages(keys, {
      ...clearing,
      trimmed: [...clearing.trimmed, ...leftOut(entry, commit, head)]
    }),
    ...timerMessages(keys, commit)
  ]
  const signals = signalMessages(place, keys, commit)
  if (state === undefined && !rewrite) {
    const own = fencedByState(keys, entry, others, signals)
    const messages = [...own, ...signals]
    const lastSeq = (from: number) => Math.max(entry.lastSeq, from + messages.length - 1)
    return {
      messages,
      signalsAt: own.length,
      after: (from) => ({ ...entry, head, lastSeq: lastSeq(from) })
    }
  }
  const record = recordMessage(keys, entry, commit, id, head)
  const own = [record, ...entry.isFenced ? others : checked(keys, entry, others)]
  const messages = [...own, ...signals]
  return {
    messages,
    signalsAt: own.length,
    after: (first) => ({
      ...entry,
      seq: first,
      revision: typeof state === "string" ? first : entry.revision,
      text: undefined,
      head,
      voided: entry.voided === undefined
        ? undefined
        : { ...entry.voided, before: entry.voided.before ?? first },
      isFenced: true,
      lastSeq: first + messages.length - 1
    })
  }
}

/**
 * The first step of a commit that is too large for one batch: items above the head do not count
 * from now on. The entry must not be claimed, so that it has its text.
 */
export const capPlan = (
  place: Bucket,
  entry: ActorEntry,
  { commit, id }: CommitWork
): CommitPlan => {
  const nothing: Commit = {
    ...commit,
    state: undefined,
    append: [],
    remove: [],
    timer: undefined,
    signals: [],
    consumedSignal: undefined
  }
  const clearing = noTrim(entry)
  const plan = planCommit(place, entry, { commit: nothing, id, logMessages: [], clearing })
  const [record, ...rest] = plan.messages
  if (record === undefined) return plan
  return { ...plan, messages: [withHeaders(record, `${CAP}: ${entry.head}\r\n`), ...rest] }
}

/** The second step: the items, in batches of so many messages. */
export const itemPlans = (
  place: Bucket,
  capped: ActorEntry,
  { commit, logMessages }: CommitWork,
  messagesMax: number
): ReadonlyArray<ReadonlyArray<StreamMessage>> => {
  const keys = actorKeys(place, commit.address)
  const plans: Array<ReadonlyArray<StreamMessage>> = []
  for (let from = 0; from < logMessages.length; from += messagesMax) {
    const some = logMessages.slice(from, from + messagesMax)
    plans.push(itemMessages(keys, some, expectSequence(capped.seq, keys.state)))
  }
  return plans
}

/** The last step: everything else, and the items count. */
export const uncapPlan = (
  place: Bucket,
  entry: ActorEntry,
  capped: ActorEntry,
  work: CommitWork
): CommitPlan => {
  const head = headAfter(entry, work.commit)
  return planCommit(
    place,
    { ...capped, text: entry.text, head },
    {
      ...work,
      // Nothing of it may fail for a signal that was replaced: it stays, and fires once more.
      commit: { ...work.commit, append: [], head, consumedSignal: undefined },
      logMessages: []
    },
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
export const conflictAfterReload = (
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
export const mayBeOverwritten = (
  known: ActorEntry,
  fresh: ActorEntry,
  { append, state }: Commit
): boolean => typeof state === "string" && append.length === 0 && fresh.revision !== known.revision

/**
 * `revision`: of the actor once the commit was kept; `firstSignal`: sequence of the message of its
 * first signal, NaN when that is unknown.
 */
export const committed = (
  { expected, signals, state }: Commit,
  revision: number,
  firstSignal: number
): CommitOutcome => ({
  _tag: "Committed",
  revision: state === null ? 0 : state === undefined ? expected : revision,
  signalRevisions: signals.length === 0 ? noSignals : signals.map((_, at) => firstSignal + at)
})
