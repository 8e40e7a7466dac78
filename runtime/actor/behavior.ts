/**
 * Behaviors: what an actor decides. A behavior is a table of state x message -> Decision whose
 * missing cell is a compile error; its cells are synchronous and pure, on plain records. What
 * the decision asks for is carried out by the runtime: committed, replied, then performed.
 */
import type { Effect } from "effect"
import type { Address } from "./address.ts"
import type { AskFailure, StorageFailure } from "./errors.ts"

export interface LogItem {
  /** Counts from 1 in each actor's log; never used twice. */
  readonly n: number
  /** Opaque to the store. Any text; a lone surrogate may come back as U+FFFD. */
  readonly value: string
}

/** A plain record with a discriminating tag; states, messages and actions are such. */
export interface Tagged {
  readonly _tag: string
}

/** What a cell may know beside its state and message. */
export interface DecisionContext {
  /** The actor's own address. */
  readonly self: Address
  /** The node's clock, ms since the epoch. A hint: it may jump. */
  readonly nowMs: number
  /** Number of the last log item, counted from 1; 0 before the first. */
  readonly head: number
  /**
   * The number that came with the signal ({@link Decision.signal}), whose commit is durable.
   * Undefined for all other messages, and after a crash.
   */
  readonly hint: number | undefined
  /** Number of the item remembered under this key, when it is among the last `recall.items`. */
  readonly findDuplicate: (key: string) => number | undefined
}

/** A reply that says no; `reason` is a name of the field, `detail` is for a person. */
export interface Refusal {
  readonly _tag: "Refused"
  readonly reason: string
  readonly detail: string | undefined
}

/** A signal to another actor. */
interface DecisionSignal {
  readonly address: Address
  readonly hint: number | undefined
}

/**
 * What a cell decided. The parts are set by the fluent methods below; a part that is not set
 * changes nothing. A decision is made for one message, and used once.
 */
export class Decision<State, Reply = never, Action = never> {
  /** The next state, and whether it is written (`become`) or only remembered (`remember`). */
  nextState: State | undefined = undefined
  durable = false
  /** The actor's record and log are removed; it is as if it had never been. */
  removesActor = false
  items: Array<string> | undefined = undefined
  removals: Array<number> | undefined = undefined
  /** ms since the epoch; null clears. */
  timerAtMs: number | null | undefined = undefined
  /** ms since the epoch. */
  deferUntilMs: number | undefined = undefined
  signals: Array<DecisionSignal> | undefined = undefined
  answer: Reply | Refusal | undefined = undefined
  actions: Array<Action> | undefined = undefined

  /** Goes on in `state`, which is written with this commit. */
  become(state: State): this {
    this.nextState = state
    this.durable = true
    return this
  }
  /**
   * Goes on in `state` without writing it. Two uses: together with an appended item, for what
   * the log tells again (see {@link Behavior.recall}); and for volatile parts of a state, such
   * as what is under way on this node. Nothing is committed for it. It is dropped when the actor
   * is loaded again: after a lost commit, a restart, a sleep, on another node. `encode` must
   * leave volatile parts out, since a later `become` writes the whole state.
   */
  becomeInMemory(state: State): this {
    this.nextState = state
    return this
  }
  /** Appends a log item; its number is the head + 1 at its place. */
  append(value: string): this {
    this.items === undefined ? this.items = [value] : this.items.push(value)
    return this
  }
  /** Deletes log items by number; the state is written too, since it keeps the head. */
  removeItems(...numbers: ReadonlyArray<number>): this {
    this.removals = [...this.removals ?? [], ...numbers]
    return this
  }
  /** Sets the actor's only timer time, ms since the epoch; null clears it. */
  setTimer(atMs: number | null): this {
    this.timerAtMs = atMs
    return this
  }
  /**
   * Leaves the stored timer, or the signal that fired, as it is, while this node fires it only at
   * `untilMs`, ms since the epoch. The next owner of the shard, after a crash too, fires it at the
   * stored time: at once when that is past. So an attempt is repeated at once when this node dies,
   * and at `untilMs` when only its answer is lost.
   *
   * It writes nothing, and a timer whose decision defers it has not ended. Together with
   * {@link Decision.setTimer}: that time is stored, and deferred. A later `setTimer` ends the
   * deferral, of a signal too. A signal that comes later is not deferred.
   */
  deferTimer(untilMs: number): this {
    this.deferUntilMs = untilMs
    return this
  }
  /**
   * Signals another actor of the same shard, in the same commit: it gets its timer's message at
   * once. An address of another shard is a defect. Its own timer stays as it is, and it cannot
   * overlook the signal: what it decides before the signal fires leaves the signal in the store.
   *
   * `hint` is its {@link DecisionContext.hint}, such as how far a log goes with this commit: the
   * greatest of several signals, none when one of them has none. The hint is only in memory: after
   * a crash the signal comes without it.
   */
  signal(address: Address, hint?: number): this {
    this.signals ??= []
    this.signals.push({ address, hint })
    return this
  }
  /**
   * Replies once all that this decision has seen and asked for is durable. A reply is a JSON
   * value, since it may go to another node.
   */
  reply<Replied>(answer: Replied): Decision<State, Reply | Replied, Action> {
    // The reply's type is a parameter that only grows: the object is the same.
    const widened = this as unknown as Decision<State, Reply | Replied, Action>
    widened.answer = answer
    return widened
  }
  /** Performs an effect after the commit; at most once, unless a timer finds it undone. */
  perform<Performed>(action: Performed): Decision<State, Reply, Action | Performed> {
    // As in `reply`.
    const widened = this as unknown as Decision<State, Reply, Action | Performed>
    widened.actions = [...widened.actions ?? [], action]
    return widened
  }
  /** Removes the actor's state, log and timer. */
  removeActor(): this {
    this.removesActor = true
    return this
  }
}

/** A decision that goes on in `state`. */
export const become = <State>(state: State): Decision<State> => new Decision<State>().become(state)

/** A decision that changes nothing by itself. */
export const stay = <State = never>(): Decision<State> => new Decision<State>()

/** A decision that appends a log item and leaves the state. */
export const append = <State = never>(value: string): Decision<State> =>
  new Decision<State>().append(value)

/** A decision that only says no, and why. */
export const refuse = (reason: string, detail?: string): Decision<never> => {
  const decision = new Decision<never>()
  decision.answer = { _tag: "Refused", reason, detail }
  return decision
}

/** Whether a reply is a refusal. */
export const isRefusal = (reply: unknown): reply is Refusal =>
  typeof reply === "object" && reply !== null && "_tag" in reply && reply._tag === "Refused"

/** The member of a tagged union with this tag. */
export type Variant<Union extends Tagged, Tag extends string> = Extract<Union, { _tag: Tag }>

/**
 * One cell for each state and message. Deleting a cell does not compile.
 */
export type BehaviorTable<State extends Tagged, Message extends Tagged, Reply, Action = never> = {
  readonly [S in State["_tag"]]: {
    readonly [M in Message["_tag"]]: (
      state: Variant<State, S>,
      message: Variant<Message, M>,
      context: DecisionContext
    ) => Decision<State, Reply, Action> | Decision<never, never, never>
  }
}

/** How much of its log an activation reads when it wakes, and what it makes of it. */
export interface Recall<State> {
  /** The last so many items are read. */
  readonly items: number
  /** The key under which `context.recent` finds the item; undefined for none. */
  readonly keyOf: (value: string) => string | undefined
  /** The state with what the last items tell that the record does not. */
  readonly restore: (state: State, items: ReadonlyArray<LogItem>) => State
}

/** The other actors, as an effect gets at them. */
export interface Peers {
  /**
   * Sends a message and waits for the reply, which may be a refusal. The actor may be on another
   * node. Asks of effects are taken while their node drains, so that the effects can end.
   */
  readonly ask: <Message extends Tagged>(
    to: Address,
    message: Message
  ) => Effect.Effect<unknown, AskFailure>
  /** Log items with `n >= from`, ascending; only what is durable. */
  readonly read: (
    of: Address,
    from: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<LogItem>, StorageFailure>
}

/** All that the runtime needs to know of a kind of actor. */
export interface Behavior<
  State extends Tagged,
  Message extends Tagged,
  Reply,
  Action extends Tagged
> {
  readonly kind: string
  /** The state of an actor that has no record. */
  readonly initial: State
  readonly table: BehaviorTable<State, Message, Reply, Action>
  /** The state's record text. What only the log tells may be left out. */
  readonly encode: (state: State) => string
  /** The state of a record; throws when it is none of this kind. */
  readonly decode: (text: string) => State
  /** A message from outside the process; throws when it is none of this kind. */
  readonly decodeMessage: (input: unknown) => Message
  readonly recall?: Recall<State>
  /**
   * The message that a due timer becomes. Its decision ends the timer, unless it sets the
   * next or holds it. It may come early, or once too often, never too seldom: the cell
   * looks at its state, and sets the time again when it is not yet due.
   */
  readonly timerMessage: Message
  /**
   * Carries out an action after its commit. What it answers is told to the actor as a message.
   * A failure is a defect: logged, and the actor is restarted. (A method, so that a behavior
   * that performs nothing, with `never` for its actions, is one of {@link AnyBehavior} too.)
   */
  perform(action: Action, self: Address, peers: Peers): Effect.Effect<Message | void>
}

/** A behavior whose own types are not of interest. */
// The four types are used both ways, so no supertype but this one holds every behavior.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyBehavior = Behavior<any, any, any, any>
