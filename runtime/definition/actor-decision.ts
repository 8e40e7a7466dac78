/**
 * The decision of a cell of a definition. It is the runtime's {@link Decision}, with log items,
 * actions and timers as the definition declares them.
 */
import { type Address, Decision, type Refusal } from "../actor/index.ts"
import { type MissedTicks, resolutionMs } from "./recurrence.ts"
import type { JsonValue } from "./shapes.ts"

/** A refusal without data. */
export interface PlainRefusal extends Refusal {
  readonly data?: undefined
}

/** A refusal with data for programs, such as when the message will be accepted. */
export interface DataRefusal<Reason extends string, Data> extends Refusal {
  readonly reason: Reason
  /** A JSON value. */
  readonly data: Data
}

/** How often a recurring timer fires, and what happens to the ticks that nobody could process. */
export interface IntervalOptions {
  /**
   * What happens to ticks that are overdue because no node ran: `skip` them; deliver `once` for all
   * of them; or deliver `all`, one after the other.
   */
  readonly missed: MissedTicks
  /** The first tick, ms since the epoch; by default one interval after the decision. */
  readonly firstMs?: number
  /** With `skip`: how late a tick may be; by default a minute, but less than one interval. */
  readonly lateMs?: number
}

/** What a decision does with the actor's timer. */
export type DecidedTimer =
  | { readonly _tag: "Clear" }
  | { readonly _tag: "Once"; readonly atMs: number }
  | { readonly _tag: "Every"; readonly everyMs: number; readonly options: IntervalOptions }
  | { readonly _tag: "Retry"; readonly afterMs: number }

const assertDuration = (name: string, ms: number): void => {
  if (Number.isFinite(ms) && ms >= resolutionMs) return
  throw new RangeError(`${name} is ${ms} ms: use ${resolutionMs} ms or more`)
}

/**
 * The decision of a cell: what the actor becomes, appends to its log, replies and does. A part that
 * is not set changes nothing. A decision is for one message only.
 */
export class ActorDecision<State, Reply = undefined, Action = never, Item = never> {
  /** The decision for the runtime; the definition completes it by items and timer. */
  readonly inner: Decision<State, Reply, Action> = new Decision()
  items: Array<Item> | undefined = undefined
  timer: DecidedTimer | undefined = undefined
  /** {@link refuse} made it. A value that a reply passes on is no refusal, whatever it is. */
  isRefused = false

  /** Continues in this state, which is stored. */
  become<const Next>(state: Next): ActorDecision<State | Next, Reply, Action, Item> {
    // Only the type changes, to include the new state: the object is the same.
    const widened = this as unknown as ActorDecision<State | Next, Reply, Action, Item>
    widened.inner.become(state)
    return widened
  }

  /** Appends an item to the actor's log, where `log` of the definition is its Schema. */
  append<const Appended>(item: Appended): ActorDecision<State, Reply, Action, Item | Appended> {
    // As in `become`.
    const widened = this as unknown as ActorDecision<State, Reply, Action, Item | Appended>
    widened.items = [...widened.items ?? [], item]
    return widened
  }

  /** Deletes log items by their numbers. */
  removeItems(...numbers: ReadonlyArray<number>): this {
    this.inner.removeItems(...numbers)
    return this
  }

  /**
   * Sets the actor's only timer, ms since the epoch; null ends it. When it is due, also after a
   * restart, the actor receives the message that the definition names as `timer`. It never comes
   * early, and it is never lost. The time replaces an interval or an attempt.
   */
  setTimer(atMs: number | null): this {
    if (atMs !== null && !Number.isFinite(atMs)) {
      throw new RangeError(`the timer is set to ${atMs} ms: use a time in ms since the epoch`)
    }
    this.timer = atMs === null ? { _tag: "Clear" } : { _tag: "Once", atMs }
    return this
  }

  /**
   * Makes the actor's only timer recur, every `everyMs`, until another decision sets it. The cell
   * of the timer's message finds the time of the tick in `context.tick`.
   */
  setInterval(everyMs: number, options: IntervalOptions): this {
    assertDuration("an interval", everyMs)
    if (options.lateMs !== undefined) assertDuration("the lateness of a tick", options.lateMs)
    this.timer = { _tag: "Every", everyMs, options }
    return this
  }

  /**
   * Performs an effect that must happen. If the actor decides nothing else meanwhile, its timer's
   * message comes `retryAfterMs` later, or at once on the next node after a crash; its cell makes
   * the attempt again. So the effect happens at least once. The actor's only timer serves for it,
   * until a decision ends it: by `setTimer(null)`, another time or attempt, or `removeActor`.
   */
  attempt<const Performed>(
    action: Performed,
    retryAfterMs: number
  ): ActorDecision<State, Reply, Action | Performed, Item> {
    assertDuration("the time of an attempt", retryAfterMs)
    this.timer = { _tag: "Retry", afterMs: retryAfterMs }
    return this.perform(action)
  }

  /** Performs an effect after the commit, at most once. */
  perform<const Performed>(
    action: Performed
  ): ActorDecision<State, Reply, Action | Performed, Item> {
    // As in `become`.
    const widened = this as unknown as ActorDecision<State, Reply, Action | Performed, Item>
    this.inner.perform(action)
    return widened
  }

  /** Replies, with a JSON value, once this decision and all that it depends on is durable. */
  reply<const Replied>(answer: Replied): ActorDecision<State, Replied, Action, Item> {
    // As in `become`.
    const answered = this as unknown as ActorDecision<State, Replied, Action, Item>
    answered.inner.reply(answer)
    return answered
  }

  /** Sends another actor of the same shard its timer's message at once, in the same commit. */
  signal(address: Address): this {
    this.inner.signal(address)
    return this
  }

  /** Removes the actor's state, log and timer. */
  removeActor(): this {
    this.inner.removeActor()
    return this
  }
}

/** A decision that continues in `state`, which is stored. */
export const become = <const State>(state: State): ActorDecision<State> =>
  new ActorDecision<never>().become(state)

/** A decision that changes nothing. */
export const stay = (): ActorDecision<never> => new ActorDecision<never>()

/** A decision that appends an item to the actor's log. */
export const append = <const Item>(item: Item): ActorDecision<never, undefined, never, Item> =>
  new ActorDecision<never>().append(item)

/** Makes decisions that refuse a message. */
interface Refuse {
  (reason: string, detail?: string): ActorDecision<never, PlainRefusal>
  <const Reason extends string, const Data extends JsonValue>(
    reason: Reason,
    detail: string | undefined,
    data: Data
  ): ActorDecision<never, DataRefusal<Reason, Data>>
}

/**
 * A decision that only refuses the message. `reason` is for programs, `detail` for people, and
 * `data` is what programs need besides the reason: a JSON value, which the caller finds in the
 * reply with its type.
 */
export const refuse: Refuse = (
  reason: string,
  detail?: string,
  data?: JsonValue
): ActorDecision<never, never> => {
  const refusal = {
    _tag: "Refused",
    reason,
    detail,
    ...data === undefined ? {} : { data }
  } as const
  const decision = new ActorDecision<never>().reply(refusal)
  decision.isRefused = true
  // It has the data of its overload.
  return decision as unknown as ActorDecision<never, never>
}
