/** The messages of one commit, and its actor once they are stored. */
import { keyOf, LogConflict, RevisionConflict } from "../../actor/index.ts"
import { markerTtl, timerMarkerTtlSeconds } from "../../limits.ts"
import { type Commit, type CommitOutcome, noSignals } from "../../ports/index.ts"
import { type ActorKeys, actorKeys, type Bucket, commitHeader, expectSequence, type StreamMessage,
  timerKey } from "../stream/index.ts"
import { type ActorEntry, capHeader, encodeLogMessage, floorHeader, headHeader, type LogMessage,
  lowWatermarkHeader, revisionHeader, timerHeader, voidHeader } from "./actor-entry.ts"
import { type LogTrim, noTrim, type TrimmedMessage } from "./log-trim.ts"

/** A commit, and what its messages are made of. */
export interface CommitWork {
  readonly commit: Commit
  readonly id: string
  /** The items that it appends. */
  readonly logMessages: ReadonlyArray<LogMessage>
  /** The removal of its items. */
  readonly trim: LogTrim
}

export interface CommitPlan {
  readonly messages: ReadonlyArray<StreamMessage>
  /** Index of the message of the commit's first signal; its others follow. */
  readonly signalsAt: number
  readonly timers: TimerChange
  /** The actor once they are stored, the first of them with this sequence. */
  readonly after: (first: number) => ActorEntry
}

const markerLine = "KV-Operation: DEL\r\n"

const expiringMarkerLines = `${markerLine}Nats-TTL: ${markerTtl}\r\n`

const timerMarkerLines = `${markerLine}Nats-TTL: ${timerMarkerTtlSeconds}s\r\n`

const noMessages: ReadonlyArray<StreamMessage> = []

/** The change of a commit to its actor's own timer. */
export interface TimerChange {
  /** The timer after the commit. */
  readonly timer: number | undefined
  /** The keys that it ends, and the key that it sets. */
  readonly ended: ReadonlyArray<string>
  readonly set: string | undefined
}

/** Whether a commit changes the timer, which is noted in the record. */
export const changesTimer = (entry: ActorEntry, { state, timer }: Commit): boolean =>
  state === null || (timer !== undefined && (timer ?? undefined) !== entry.timer)

const timerChange = (bucket: Bucket, entry: ActorEntry, commit: Commit): TimerChange => {
  const { address, firedTimer } = commit
  const changes = changesTimer(entry, commit)
  const decided = commit.state === null ? undefined : commit.timer ?? undefined
  const timer = changes ? decided : entry.timer
  if (!changes && firedTimer === undefined) return { timer, ended: noKeys, set: undefined }
  const ended = [...new Set([entry.timer, firedTimer])].flatMap((atMs) =>
    atMs === undefined || atMs === timer ? [] : [timerKey(bucket, address, atMs)]
  )
  const set = changes && timer !== undefined ? timerKey(bucket, address, timer) : undefined
  return { timer, ended, set }
}

const noKeys: ReadonlyArray<never> = []

/** The old place of the timer goes in the commit that writes the new one. */
const timerMessages = ({ ended, set }: TimerChange): ReadonlyArray<StreamMessage> => {
  if (ended.length === 0 && set === undefined) return noMessages
  const messages: Array<StreamMessage> = ended.map((subject) => ({
    subject,
    data: "",
    headers: timerMarkerLines
  }))
  if (set !== undefined) messages.push({ subject: set, data: "", headers: "" })
  return messages
}

/**
 * The last messages of a plan: the signals of the commit, and the removal of the signal that it
 * consumes. The removal fails the batch when another signal has replaced that one. A message has
 * one expectation only, so the removal cannot be the first message, which checks the record.
 */
const signalMessages = (
  bucket: Bucket,
  keys: ActorKeys,
  { consumedSignal, signals }: Commit
): ReadonlyArray<StreamMessage> => {
  if (consumedSignal === undefined && signals.length === 0) return noMessages
  const messages: Array<StreamMessage> = signals.map(({ address, atMs }) => ({
    subject: actorKeys(bucket, address).signal,
    data: String(atMs),
    headers: ""
  }))
  if (consumedSignal !== undefined) {
    const headers = expiringMarkerLines + expectSequence(consumedSignal)
    messages.push({ subject: keys.signal, data: "", headers })
  }
  return messages
}

/** The number of the last log item after the commit. */
export const headAfter = (entry: ActorEntry, commit: Commit): number =>
  Math.max(
    entry.head,
    commit.append.at(-1)?.n ?? 0,
    commit.state === undefined ? 0 : commit.head
  )

/** Headers of a state record. */
const recordHeaders = (entry: ActorEntry, id: string, head: number, revision: number): string => {
  const { lowWatermark, floor, timer, voided } = entry
  let headers = `${expectSequence(entry.seq)}${commitHeader}: ${id}\r\n${headHeader}: ${head}\r\n`
  if (revision > 0) headers += `${revisionHeader}: ${revision}\r\n`
  if (timer !== undefined) headers += `${timerHeader}: ${timer}\r\n`
  if (floor > 0) headers += `${floorHeader}: ${floor}\r\n`
  if (lowWatermark > 0) headers += `${lowWatermarkHeader}: ${lowWatermark}\r\n`
  if (voided !== undefined) {
    headers += `${voidHeader}: ${voided.after}${
      voided.before === undefined ? "" : `:${voided.before}`
    }\r\n`
  }
  return headers
}

/** The state's record with the commit's text, or with the old one. */
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
    headers: text === undefined ? headers + markerLine : headers
  }
}

const withHeaders = (message: StreamMessage, headers: string): StreamMessage => ({
  ...message,
  headers: headers + message.headers
})

/**
 * Adds to the first message the check that nothing was appended since the actor was loaded: the
 * last owner may have appended without writing the state's key.
 */
const withAppendCheck = (
  keys: ActorKeys,
  entry: ActorEntry,
  messages: ReadonlyArray<StreamMessage>
): ReadonlyArray<StreamMessage> => {
  // An owner writes the state's key before it appends.
  if (entry.seq === 0 && entry.nextSeq === 0) return messages
  const next = `${keys.log}${entry.head + 1}`
  const [first, ...rest] = messages
  if (first === undefined) {
    return [{
      subject: next,
      data: "",
      headers: expiringMarkerLines + expectSequence(entry.nextSeq)
    }]
  }
  const own = first.subject === next
  return [withHeaders(first, expectSequence(entry.nextSeq, own ? undefined : next)), ...rest]
}

/**
 * Makes the first of these messages check that the state's key was never written. For signals
 * alone, a separate message does so, whose marker expires.
 */
const fencedByState = (
  keys: ActorKeys,
  entry: ActorEntry,
  [first, ...rest]: ReadonlyArray<StreamMessage>,
  signals: ReadonlyArray<StreamMessage>
): ReadonlyArray<StreamMessage> => {
  const fence = expectSequence(entry.seq, keys.state)
  if (first !== undefined) return [withHeaders(first, fence), ...rest]
  return signals.length === 0
    ? []
    : [{ subject: keys.fence, data: "", headers: expiringMarkerLines + fence }]
}

/** The removal of an actor: a marker; all older items of its log have lower sequences. */
const removal = (
  bucket: Bucket,
  keys: ActorKeys,
  entry: ActorEntry,
  commit: Commit,
  id: string
): CommitPlan => {
  const timers = timerChange(bucket, entry, commit)
  const others = timerMessages(timers)
  const signals = signalMessages(bucket, keys, commit)
  const markerExpires = entry.head === 0 && entry.floor === 0 && entry.voided === undefined
  const mark: StreamMessage = {
    subject: keys.state,
    data: "",
    headers: `${expectSequence(entry.seq)}${commitHeader}: ${id}\r\n${
      markerExpires ? expiringMarkerLines : markerLine
    }`
  }
  const own = [mark, ...entry.isFenced ? others : withAppendCheck(keys, entry, others)]
  const messages = [...own, ...signals]
  return {
    messages,
    signalsAt: own.length,
    timers,
    after: (first) => ({
      ...entry,
      seq: first,
      revision: 0,
      text: undefined,
      head: 0,
      floor: markerExpires ? 0 : first,
      lowWatermark: 0,
      mayAdvance: true,
      voided: undefined,
      timer: undefined,
      isFenced: true,
      lastSeq: first + messages.length - 1
    })
  }
}

/** Whether the removed actor may have left items that a purge must delete. */
export const needsPurge = (entry: ActorEntry): boolean => entry.floor > 0

/** Skipped numbers that an interrupted commit may have used. */
const skippedNumbers = (
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
 * The messages that lose items, and earlier markers. A killed server may restore a message after
 * its marker has expired, so markers expire only below the low watermark.
 */
const clearingMessages = (
  { log }: ActorKeys,
  { lowWatermark, expiring, trimmed }: LogTrim
): ReadonlyArray<StreamMessage> => [
  ...trimmed.map(({ last, n, rest }) => ({
    subject: log + n,
    ...rest === undefined
      ? { data: "", headers: last <= lowWatermark ? expiringMarkerLines : markerLine }
      : encodeLogMessage(rest)
  })),
  ...expiring.map((n) => ({ subject: log + n, data: "", headers: expiringMarkerLines }))
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

/** `rewrite`: writes the state's record although the commit has no state; it needs its text. */
export const planCommit = (
  bucket: Bucket,
  before: ActorEntry,
  { trim, commit, id, logMessages }: CommitWork,
  rewrite = !before.isFenced || changesTimer(before, commit)
): CommitPlan => {
  const { lowWatermark, mayAdvance } = trim
  const keys = actorKeys(bucket, commit.address)
  const { state } = commit
  if (state === null) {
    return removal(bucket, keys, { ...before, lowWatermark, mayAdvance }, commit, id)
  }
  const timers = timerChange(bucket, before, commit)
  const entry: ActorEntry = { ...before, lowWatermark, mayAdvance, timer: timers.timer }
  const head = headAfter(entry, commit)
  const others: ReadonlyArray<StreamMessage> = [
    ...itemMessages(keys, logMessages, `${commitHeader}: ${id}\r\n`),
    ...clearingMessages(keys, {
      ...trim,
      trimmed: [...trim.trimmed, ...skippedNumbers(entry, commit, head)]
    }),
    ...timerMessages(timers)
  ]
  const signals = signalMessages(bucket, keys, commit)
  if (state === undefined && !rewrite) {
    const own = fencedByState(keys, entry, others, signals)
    const messages = [...own, ...signals]
    const lastSeq = (from: number) => Math.max(entry.lastSeq, from + messages.length - 1)
    return {
      messages,
      signalsAt: own.length,
      timers,
      after: (from) => ({ ...entry, head, lastSeq: lastSeq(from) })
    }
  }
  const record = recordMessage(keys, entry, commit, id, head)
  const own = [record, ...entry.isFenced ? others : withAppendCheck(keys, entry, others)]
  const messages = [...own, ...signals]
  return {
    messages,
    signalsAt: own.length,
    timers,
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
 * The first step of a commit that is too large for one batch: from then on items above the head do
 * not count. `entry` must be unfenced, so that it has its text.
 */
export const capPlan = (
  bucket: Bucket,
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
    consumedSignal: undefined,
    firedTimer: undefined
  }
  const trim = noTrim(entry)
  const plan = planCommit(bucket, entry, { commit: nothing, id, logMessages: [], trim })
  const [record, ...rest] = plan.messages
  if (record === undefined) return plan
  return { ...plan, messages: [withHeaders(record, `${capHeader}: ${entry.head}\r\n`), ...rest] }
}

/** The second step: the items, in batches of at most `messagesMax` messages. */
export const itemPlans = (
  bucket: Bucket,
  capped: ActorEntry,
  { commit, logMessages }: CommitWork,
  messagesMax: number
): ReadonlyArray<ReadonlyArray<StreamMessage>> => {
  const keys = actorKeys(bucket, commit.address)
  const plans: Array<ReadonlyArray<StreamMessage>> = []
  for (let from = 0; from < logMessages.length; from += messagesMax) {
    const some = logMessages.slice(from, from + messagesMax)
    plans.push(itemMessages(keys, some, expectSequence(capped.seq, keys.state)))
  }
  return plans
}

/** The last step: everything else; from then on the items count. */
export const uncapPlan = (
  bucket: Bucket,
  entry: ActorEntry,
  capped: ActorEntry,
  work: CommitWork
): CommitPlan => {
  const head = headAfter(entry, work.commit)
  return planCommit(
    bucket,
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
  // The activation decided without knowing all items.
  if (state !== undefined && head < entry.head) return new LogConflict({ key, item: head + 1 })
  if (state === undefined && first !== undefined && first > entry.head + 1) {
    return new LogConflict({ key, item: first })
  }
  return undefined
}

/** The conflict with another activation that wrote the state's key, if only to fence it. */
export const conflictAfterReload = (
  known: ActorEntry,
  fresh: ActorEntry,
  { commit, id }: Pick<CommitWork, "commit" | "id">
): Conflict | undefined => {
  const found = conflictOf(fresh, commit)
  if (found !== undefined) return found
  // After a removal the key's marker may have expired, or been purged. The commit itself writes the
  // key to set its cap.
  if (fresh.seq === known.seq || fresh.seq === 0 || fresh.commit === id) return undefined
  const { address, expected } = commit
  return new RevisionConflict({ key: keyOf(address), expected, actual: fresh.revision })
}

export const conflict = (conflict: Conflict): CommitOutcome => ({ _tag: "Conflict", conflict })

/**
 * Whether a commit without a trace may have been stored, and overwritten by the next owner. Items
 * stay at their keys, and fencing keeps the revision of the state's record. So where the revision
 * did not change, nothing was stored.
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
