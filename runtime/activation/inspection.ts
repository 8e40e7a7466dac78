/** What an actor looks like, for people who search for a fault. No program relies on it. */
import { Effect, Option, Schema } from "effect"
import { type Address, decodeStoredState, keyOf, UnknownMessage } from "../actor/index.ts"
import { storeInterrupted } from "../clock.ts"
import { inspectedKindsMax, inspectedStateCharsMax } from "../limits.ts"
import type { StoredActor } from "../ports/index.ts"
import type { InboxMessage, ReplyCallback } from "./pending-commit.ts"
import { callStore, type RecoverySource } from "./recovery.ts"
import type { Supervisor, TroubleView } from "./supervisor.ts"

/** What is in memory, or else in the store. */
export interface InspectedActor {
  /**
   * As the behavior encodes it; left out without a record, if it cannot be encoded, and if it has
   * more than `inspectedStateCharsMax` characters, which may not fit a message of another node.
   */
  readonly state?: string
  /** The characters of the state; left out without a record. */
  readonly stateChars?: number
  /** The format of the state; left out if the record is no state. */
  readonly format?: number
  /** The number of the last log item; 0 before the first. */
  readonly head: number
  /** The time of its own timer, ms since the epoch. */
  readonly timerMs?: number
}

/** The messages of an actor without a reply so far; no content of a message. */
export interface WaitingMessages {
  /** How many there are of a kind of message, the most first; `inspectedKindsMax` kinds at most. */
  readonly waiting?: ReadonlyArray<{ readonly message: string; readonly count: number }>
  /** When the oldest was accepted, ms since the epoch; left out without one. */
  readonly oldestMs?: number
}

/** Times are ms since the epoch. */
export interface Inspection extends InspectedActor, TroubleView, WaitingMessages {
  /** Whether the actor is in memory; its state may then be ahead of the durable one. */
  readonly isLoaded: boolean
  /** Its messages without a reply so far. */
  readonly queued: number
}

/**
 * What nodes of all versions report: a field never gets another type, and a new one is left out by
 * older nodes. Fields of newer nodes are dropped.
 */
const InspectionReply: Schema.Codec<Inspection> = Schema.Struct({
  state: Schema.optionalKey(Schema.String),
  stateChars: Schema.optionalKey(Schema.Number),
  format: Schema.optionalKey(Schema.Number),
  head: Schema.Number,
  timerMs: Schema.optionalKey(Schema.Number),
  restarts: Schema.Number,
  fault: Schema.optionalKey(Schema.String),
  faultAtMs: Schema.optionalKey(Schema.Number),
  quarantine: Schema.optionalKey(
    Schema.Struct({ sinceMs: Schema.Number, untilMs: Schema.Number })
  ),
  waiting: Schema.optionalKey(
    Schema.Array(Schema.Struct({ message: Schema.String, count: Schema.Number }))
  ),
  oldestMs: Schema.optionalKey(Schema.Number),
  isLoaded: Schema.Boolean,
  queued: Schema.Number
})

const readInspection = Schema.decodeUnknownOption(InspectionReply)

/** What the owner of an actor reports of it; UnknownMessage if its version reports it otherwise. */
export const decodeInspection = (
  actor: Address,
  reply: unknown
): Effect.Effect<Inspection, UnknownMessage> => {
  const detail = "the node of the actor reports its inspection in an unknown form"
  return Option.match(readInspection(reply), {
    onNone: () => Effect.fail(new UnknownMessage({ key: keyOf(actor), detail })),
    onSome: Effect.succeed
  })
}

/** An actor that is in memory. */
interface Inspectable {
  readonly queued: number
  readonly waiting: () => WaitingMessages
  /** Undefined while it is loaded, and after its end. */
  readonly inspect: () => InspectedActor | undefined
}

/** See {@link WaitingMessages}. */
export const waitingOf = (messages: ReadonlyArray<InboxMessage>): WaitingMessages => {
  if (messages.length === 0) return {}
  const counts = new Map<string, number>()
  let oldestMs = Infinity
  for (const { acceptedMs, message: { _tag } } of messages) {
    counts.set(_tag, (counts.get(_tag) ?? 0) + 1)
    oldestMs = Math.min(oldestMs, acceptedMs)
  }
  const waiting = [...counts].toSorted(([, one], [, other]) => other - one)
    .slice(0, inspectedKindsMax)
    .map(([message, count]) => ({ message, count }))
  return { waiting, oldestMs }
}

const withTimer = (timerMs: number | undefined) => timerMs === undefined ? {} : { timerMs }

const bounded = (text: string): Pick<InspectedActor, "state" | "stateChars"> => ({
  ...text.length > inspectedStateCharsMax ? {} : { state: text },
  stateChars: text.length
})

/** A state as it is stored; a text without a format, which is no state, as it is. */
const stateOf = (stored: string | undefined): Omit<InspectedActor, "head" | "timerMs"> => {
  if (stored === undefined) return {}
  try {
    const { format, text } = decodeStoredState(stored)
    return { ...bounded(text), format }
  } catch {
    return bounded(stored)
  }
}

/** An actor of this stored state. */
export const inspected = (
  stored: string | undefined,
  head: number,
  timerMs: number | undefined
): InspectedActor => ({ ...stateOf(stored), head, ...withTimer(timerMs) })

/**
 * Replies with the {@link Inspection} of an actor of this node. One that is not in memory is not
 * loaded: a broken one would break again.
 */
export const inspect = (
  context: RecoverySource,
  supervisor: Supervisor,
  address: Address,
  actor: Inspectable | undefined,
  done: ReplyCallback
): void => {
  const trouble = supervisor.troubleOf(keyOf(address))
  const inbox = { queued: actor?.queued ?? 0, ...actor?.waiting() }
  const live = actor?.inspect()
  if (live !== undefined) return done(undefined, { ...live, ...trouble, ...inbox, isLoaded: true })
  const loading = callStore(context, () => context.storage.load(address))
  const report = ({ head, state, timer }: StoredActor) =>
    done(undefined, { ...inspected(state, head, timer), ...trouble, ...inbox, isLoaded: false })
  context.fork(
    Effect.match(loading, { onFailure: (failure) => done(failure, undefined), onSuccess: report })
  ).addObserver((exit) => {
    if (exit._tag === "Failure") done(storeInterrupted(), undefined)
  })
}
