/**
 * What passes through a node, in memory: the last messages with their outcomes, and the last
 * commits with the states that they stored. Both are bounded, in number and in characters.
 */
import { type Address, decodeStoredState, isIndeterminate, isRefusal, keyOf,
  type Tagged } from "../actor/index.ts"
import type { ReplyCallback } from "../activation/index.ts"
import type { MessageObserver } from "../node.ts"
import type { Commit } from "../ports/index.ts"
import type { OnCommit } from "./observed-storage.ts"

/** Messages and commits that are kept; the oldest leave. */
const messagesMax = 1_000
const commitsMax = 2_000
/** Characters of one message or reply, of one state, and of all recorded states. */
const contentCharsMax = 4 * 1024
const stateCharsMax = 64 * 1024
const allStatesCharsMax = 16 * 1024 * 1024

/**
 * How a message ended, if it has. `waiting`: it has not. After `failed` it has changed nothing;
 * after `indeterminate` it is not known whether it has.
 */
export type RecordedOutcome = "waiting" | "replied" | "refused" | "failed" | "indeterminate"

/** A message that came to an actor of this node. */
export interface RecordedMessage {
  /** Counts all messages since the start, from 1. */
  readonly seq: number
  readonly kind: string
  readonly id: string
  readonly tag: string
  /** What {@link MessageTexts} has of the message, cut where it is too long. */
  readonly content: string
  /** Whether it is the actor's timer, or a signal of another actor. */
  readonly isFromTimer: boolean
  /** ms since the epoch. */
  readonly atMs: number
  readonly outcome: RecordedOutcome
  /** From its arrival to its outcome. */
  readonly tookMs: number | undefined
  /** What {@link MessageTexts} has of the outcome; undefined before, and where it has nothing. */
  readonly result: string | undefined
}

/** A state that is stored: its text, or only its length when it is too long to be kept. */
export interface RecordedState {
  readonly text: string | undefined
  readonly chars: number
}

/** An actor just after one of its commits. */
export interface RecordedCommit {
  /** Counts all commits since the start, from 1. */
  readonly seq: number
  /** ms since the epoch, when the store had it. */
  readonly atMs: number
  /** The last message that had come to any actor by then. */
  readonly messageSeq: number
  /** Of its record, after the commit; NaN when another node has written it since. */
  readonly revision: number
  /** Undefined when the commit that wrote it was not recorded; null when there is no record. */
  readonly state: RecordedState | null | undefined
  /** Whether this commit wrote or removed the state. */
  readonly changesState: boolean
  /** The number of the last log item. */
  readonly head: number
  /** The numbers of the items that it appended and removed. */
  readonly appended: ReadonlyArray<number>
  readonly removed: ReadonlyArray<number>
  /** Its own timer, ms since the epoch; null without one, undefined when that is not known. */
  readonly timerMs: number | null | undefined
}

/** What the record keeps of a message. It is called for each, and may not throw. */
export interface MessageTexts {
  readonly ofMessage: (to: Address, message: Tagged) => string
  /** Of the outcome, which has the parameters of a ReplyCallback: a failure, or a reply. */
  readonly ofOutcome: (...outcome: Parameters<ReplyCallback>) => string | undefined
}

/** The beginning of a text: a copy, since a part of a string keeps the whole one in memory. */
const cut = (text: string): string =>
  text.length > contentCharsMax
    ? `${Buffer.from(text.slice(0, contentCharsMax)).toString()}…`
    : text

/** A value as JSON, whatever it is. */
const jsonOf = (value: unknown): string | undefined => {
  if (value === undefined) return undefined
  let text: string
  try {
    const seen = (_: string, inner: unknown) => typeof inner === "bigint" ? `${inner}n` : inner
    text = JSON.stringify(value, seen) ?? String(value)
  } catch {
    text = "a value that is no JSON"
  }
  return text
}

/** A reply as JSON; the words of a refusal or a failure. */
const resultOf = (...[failure, reply]: Parameters<ReplyCallback>): string | undefined => {
  if (failure !== undefined) {
    return "detail" in failure ? `${failure._tag}: ${failure.detail}` : failure._tag
  }
  if (!isRefusal(reply)) return jsonOf(reply)
  const { detail, reason } = reply
  return detail === undefined ? reason : `${reason}: ${detail}`
}

const outcomeOf = (...[failure, reply]: Parameters<ReplyCallback>): RecordedOutcome => {
  if (failure === undefined) return isRefusal(reply) ? "refused" : "replied"
  return isIndeterminate(failure) ? "indeterminate" : "failed"
}

/** All of a message and of its outcome. */
const wholeTexts: MessageTexts = {
  ofMessage: (_, message) => jsonOf(message) ?? "",
  ofOutcome: resultOf
}

const stateOf = (stored: string): RecordedState => {
  let text = stored
  try {
    text = decodeStoredState(stored).text
  } catch {
    // No state of this runtime: it is shown as it is.
  }
  return { text: text.length > stateCharsMax ? undefined : text, chars: text.length }
}

/**
 * What a commit leaves as it was: as `last` has it, the recorded commit before. Between the two,
 * another node may have written the record, or a commit whose outcome was indeterminate: the commit
 * expects another revision then.
 */
const leftBy = <const Part extends "state" | "timerMs">(
  { expected }: Commit,
  last: RecordedCommit | undefined,
  part: Part
): RecordedCommit[Part] | null | undefined => {
  if (last?.revision === expected) return last[part]
  return expected === 0 ? null : undefined
}

/** Characters in memory that the number of an item stands for, about. */
const numberChars = 8

const numbersOf = ({ appended, removed }: RecordedCommit): number =>
  numberChars * (appended.length + removed.length)

const textOf = ({ state }: RecordedCommit): string | undefined => state?.text

const lengthOf = (text: string | undefined): number => text?.length ?? 0

/** See the head of this file. */
export class Recorder implements MessageObserver {
  /** ms since the epoch. */
  readonly startedMs: number
  private readonly nowMs: () => number
  private readonly texts: MessageTexts
  private messages: Array<RecordedMessage> = []
  private messageCount = 0
  /** The recorded commits of each actor, ascending; the last changed actor is the last. */
  private readonly commits = new Map<string, Array<RecordedCommit>>()
  /** The keys of the recorded commits, the oldest first. */
  private order: Array<string> = []
  private commitCount = 0
  private chars = 0

  constructor(nowMs: () => number = Date.now, texts: MessageTexts = wholeTexts) {
    this.nowMs = nowMs
    this.texts = texts
    this.startedMs = nowMs()
  }

  readonly onMessage: MessageObserver["onMessage"] = (to, message, isFromTimer) => {
    const atMs = this.nowMs()
    const seq = ++this.messageCount
    const { id, kind } = to
    const content = cut(this.texts.ofMessage(to, message))
    const waiting = { seq, kind, id, tag: message._tag, content, isFromTimer, atMs }
    this.messages.push({ ...waiting, outcome: "waiting", tookMs: undefined, result: undefined })
    if (this.messages.length >= 2 * messagesMax) this.messages = this.messages.slice(-messagesMax)
    return (failure, reply) => {
      // They are numbered without gaps.
      const at = seq - (this.messages[0]?.seq ?? seq)
      if (this.messages[at] === undefined) return
      const outcome = outcomeOf(failure, reply)
      const text = this.texts.ofOutcome(failure, reply)
      const result = text === undefined ? undefined : cut(text)
      this.messages[at] = { ...waiting, outcome, result, tookMs: this.nowMs() - atMs }
    }
  }

  /** The store has this commit, and its record has this revision. */
  readonly onCommit: OnCommit = (commit, revision) => {
    const key = keyOf(commit.address)
    const own = this.commits.get(key) ?? []
    const last = own.at(-1)
    const { state, timer } = commit
    const removesActor = state === null
    const written = typeof state === "string" ? stateOf(state) : state
    const recorded: RecordedCommit = {
      seq: ++this.commitCount,
      atMs: this.nowMs(),
      messageSeq: this.messageCount,
      revision,
      state: written === undefined ? leftBy(commit, last, "state") : written,
      changesState: state !== undefined,
      head: removesActor ? 0 : commit.head,
      appended: removesActor ? [] : commit.append.map(({ n }) => n),
      removed: commit.remove,
      timerMs: removesActor ? null : timer === undefined ? leftBy(commit, last, "timerMs") : timer
    }
    own.push(recorded)
    this.commits.delete(key)
    this.commits.set(key, own)
    this.order.push(key)
    // A commit that leaves the state shares the text of the one before it.
    this.chars += numbersOf(recorded) +
      (recorded.state === last?.state ? 0 : lengthOf(textOf(recorded)))
    while (this.order.length > commitsMax || this.chars > allStatesCharsMax) this.forgetOldest()
  }

  /** The last messages, the newest first: of an actor, of a kind, or all. */
  messagesOf(about: Partial<Address>, limit: number): ReadonlyArray<RecordedMessage> {
    const { id, kind } = about
    return this.messages.slice(-messagesMax)
      .filter((one) => (kind ?? one.kind) === one.kind && (id ?? one.id) === one.id)
      .slice(-limit).toReversed()
  }

  /** The recorded commits of an actor, ascending. */
  commitsOf(address: Address): ReadonlyArray<RecordedCommit> {
    return this.commits.get(keyOf(address)) ?? []
  }

  /** The kinds and ids of the actors with recorded commits, the last changed first. */
  changedActors(limit: number): ReadonlyArray<string> {
    return [...this.commits.keys()].slice(-limit).toReversed()
  }

  private forgetOldest(): void {
    const key = this.order.shift()
    const own = this.commits.get(key ?? "")
    const forgotten = own?.shift()
    if (key === undefined || own === undefined || forgotten === undefined) return
    const [next] = own
    this.chars -= numbersOf(forgotten) +
      (forgotten.state === next?.state ? 0 : lengthOf(textOf(forgotten)))
    if (next === undefined) this.commits.delete(key)
  }
}
