/**
 * Behaviors: the decision tables of actors. A behavior maps each state and message to a decision;
 * a missing cell does not compile. Cells are synchronous, pure functions of plain records. The
 * runtime commits the decision, sends the reply, and then performs the actions.
 */
import type { Effect } from "effect"
import type { Address } from "./address.ts"
import type { AskFailure, StorageFailure } from "./errors.ts"

/** An item of an actor's log, as the store has it. */
export interface LogItem {
  /** Counts from 1 in each actor's log; never used twice. */
  readonly n: number
  /** Opaque to the store. Any text; a lone surrogate may come back as U+FFFD. */
  readonly value: string
}

/** A plain record with a discriminating tag: a state, a message or an action. */
export interface Tagged {
  readonly _tag: string
}

/** The input of a cell besides its state and message. */
export interface DecisionContext {
  /** The actor's own address. */
  readonly self: Address
  /** The node's clock, ms since the epoch. A hint: it may jump. */
  readonly nowMs: number
  /** Number of the last log item, counted from 1; 0 before the first. */
  readonly head: number
  /** Whether the message is the timer message for a signal of another actor. */
  readonly isSignal: boolean
  /**
   * Whether the commit of that signal is durable. The signals of a lost commit fire too, since the
   * store may have kept it.
   */
  readonly isSignalDurable: boolean
  /**
   * The newest format of states, log items and messages that every node of the cluster reads. A
   * decision that needs a newer one must wait, or use the older form.
   */
  readonly format: number
  /**
   * The number of the signal that fired ({@link Decision.signal}); the signal's commit is durable.
   * Undefined for all other messages, for the signal of a lost commit, and after a crash.
   */
  readonly hint: number | undefined
  /** Number of the item with this key, if it is among the last `recall.items`. */
  readonly findDuplicate: (key: string) => number | undefined
}

/** A reply that rejects the message; `reason` is for programs, `detail` for people. */
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
 * The decision of a cell. The methods below set its parts; a part that is not set changes nothing.
 * A decision is for one message only.
 */
export class Decision<State, Reply = never, Action = never> {
  /** The next state; `durable`: it is stored (`become`), not only in memory. */
  nextState: State | undefined = undefined
  durable = false
  /** Removes the actor's record and log, as if it had never existed. */
  removesActor = false
  items: Array<string> | undefined = undefined
  /** The keys of the items by their index; missing where the cell has given none. */
  itemKeys: Array<string> | undefined = undefined
  removals: Array<number> | undefined = undefined
  /** ms since the epoch; null clears. */
  timerAtMs: number | null | undefined = undefined
  /** ms since the epoch. */
  deferUntilMs: number | undefined = undefined
  signals: Array<DecisionSignal> | undefined = undefined
  answer: Reply | Refusal | undefined = undefined
  actions: Array<Action> | undefined = undefined

  /** Continues in `state`, which this commit stores. */
  become(state: State): this {
    this.nextState = state
    this.durable = true
    return this
  }
  /**
   * Continues in `state` without storing it. Two uses: together with an appended item, for what
   * the actor restores from its log (see {@link Behavior.recall}); and for volatile parts of a
   * state, such as effects under way on this node. The actor loses the state when it is loaded
   * again: after a lost commit, a restart, a passivation, or on another node. `encode` must omit
   * volatile parts, because a later `become` stores the whole state.
   */
  becomeInMemory(state: State): this {
    this.nextState = state
    return this
  }
  /**
   * Appends a log item; its number is the head of the log plus 1. A cell that knows the item's
   * {@link Recall.keyOf} hands it over, so that the runtime need not parse the item.
   */
  append(value: string, key?: string): this {
    this.items === undefined ? this.items = [value] : this.items.push(value)
    if (key !== undefined) (this.itemKeys ??= [])[this.items.length - 1] = key
    return this
  }
  /** Deletes log items by number. This stores the state too, because its record has the head. */
  removeItems(...numbers: ReadonlyArray<number>): this {
    this.removals = [...this.removals ?? [], ...numbers]
    return this
  }
  /** Sets the actor's single timer, ms since the epoch; null clears it. */
  setTimer(atMs: number | null): this {
    this.timerAtMs = atMs
    return this
  }
  /**
   * Defers the stored timer, or the signal that fired: this node fires it at `untilMs`, ms since
   * the epoch. The stored time does not change. The next owner of the shard, also after a crash,
   * fires it at the stored time, or at once if that has passed. So an attempt is repeated at once
   * when this node crashes, and at `untilMs` when only its result is lost.
   *
   * Deferring stores nothing, and does not end the timer. With {@link Decision.setTimer} in the
   * same decision, the new time is stored and deferred. A later `setTimer` ends the deferral, also
   * of a signal. Later signals are not deferred.
   */
  deferTimer(untilMs: number): this {
    this.deferUntilMs = untilMs
    return this
  }
  /**
   * Signals another actor of the same shard in the same commit: the other actor receives its timer
   * message at once. An address of another shard is a defect. The other actor's own timer does not
   * change. A decision that the other actor makes before the signal fires does not remove it.
   *
   * `hint` becomes the {@link DecisionContext.hint}, such as the head of a log after this commit.
   * Several signals combine to the greatest hint, or to none if one of them has none. The hint is
   * only in memory: after a crash the signal fires without it.
   */
  signal(address: Address, hint?: number): this {
    this.signals ??= []
    this.signals.push({ address, hint })
    return this
  }
  /**
   * Replies once this decision and everything that it depends on is durable. A reply is a JSON
   * value, because it may travel to another node.
   */
  reply<Replied>(answer: Replied): Decision<State, Reply | Replied, Action> {
    // Only the type changes, to include the new reply: the object is the same.
    const widened = this as unknown as Decision<State, Reply | Replied, Action>
    widened.answer = answer
    return widened
  }
  /** Performs an effect after the commit, at most once; the actor's timer may repeat it. */
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

/** A decision that continues in `state` and stores it. */
export const become = <State>(state: State): Decision<State> => new Decision<State>().become(state)

/** A decision that changes nothing. */
export const stay = <State = never>(): Decision<State> => new Decision<State>()

/** A decision that appends a log item and does not change the state. */
export const append = <State = never>(value: string, key?: string): Decision<State> =>
  new Decision<State>().append(value, key)

/** A decision that only refuses the message. */
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

/** One cell for each state and message; a missing cell does not compile. */
export type BehaviorTable<State extends Tagged, Message extends Tagged, Reply, Action = never> = {
  readonly [S in State["_tag"]]: {
    readonly [M in Message["_tag"]]: (
      state: Variant<State, S>,
      message: Variant<Message, M>,
      context: DecisionContext
    ) => Decision<State, Reply, Action> | Decision<never, never, never>
  }
}

/** How an activation restores state from the end of its log when it starts. */
export interface Recall<State> {
  /** How many of the last items the activation reads. */
  readonly items: number
  /**
   * The first number that `restore` needs for the state of the record; by default it gets all of
   * the last items. Infinity: it needs none.
   */
  readonly firstOf?: (state: State) => number
  /** The key by which `context.findDuplicate` finds the item; undefined for none. */
  readonly keyOf: (value: string) => string | undefined
  /** Adds the information of the last items that the record does not have. */
  readonly restore: (state: State, items: ReadonlyArray<LogItem>) => State
  /**
   * Whether `restore` may be called with the parts of the items instead, one after the other. Then
   * an actor with large items does not need the memory for all of them to start.
   */
  readonly restoresInParts?: boolean
}

/** Access to other actors, for effects. */
export interface Peers {
  /**
   * Sends a message and waits for the reply, which may be a refusal. The actor may be on another
   * node. A draining node accepts the asks of effects, so that the effects can end.
   */
  readonly ask: <Message extends Tagged>(
    to: Address,
    message: Message
  ) => Effect.Effect<unknown, AskFailure>
  /**
   * Durable log items with `n >= from`, ascending, at most `limit`. `charsMax`: the result ends
   * with the item that reaches so many characters.
   */
  readonly read: (
    of: Address,
    from: number,
    limit: number,
    charsMax?: number
  ) => Effect.Effect<ReadonlyArray<LogItem>, StorageFailure>
}

/** A kind of actor: its decision table, encodings and effects. */
export interface Behavior<
  State extends Tagged,
  Message extends Tagged,
  Reply,
  Action extends Tagged
> {
  readonly kind: string
  /** The state of an actor without a record. */
  readonly initial: State
  readonly table: BehaviorTable<State, Message, Reply, Action>
  /**
   * Encodes the state in this format, the newest that every node reads. It may omit what `recall`
   * restores from the log. It keeps the fields that `decode` did not know: they are of a later
   * program, to whose node the actor may move back. `self` is the actor, to whose record a behavior
   * may bind what it encrypts.
   */
  readonly encode: (state: State, format: number, self: Address) => string
  /** Decodes the state of a record in this format; throws if it is not valid. */
  readonly decode: (text: string, format: number, self: Address) => State
  /** Decodes a message from outside the process, ignores unknown fields; throws if not valid. */
  readonly decodeMessage: (input: unknown) => Message
  readonly recall?: Recall<State>
  /**
   * About how many bytes the state takes in memory: for a kind whose states are much larger than
   * their records. By default the runtime estimates them by the length of the record.
   */
  readonly bytesOf?: (state: State) => number
  /**
   * The message of a due timer. Its decision ends the timer, unless the decision sets or defers
   * one. The message may arrive early or more than once, but is never lost. So the cell checks its
   * state, and sets the timer again if nothing is due yet.
   */
  readonly timerMessage: Message
  /**
   * Performs an action after its commit. The runtime sends the result to the actor as a message.
   * A failure is a defect: the runtime logs it and restarts the actor. (It is a method, so that a
   * behavior without actions, of type `never`, is assignable to {@link AnyBehavior}.)
   */
  perform(action: Action, self: Address, peers: Peers): Effect.Effect<Message | void>
}

/** Any behavior, without its types. */
// The types are inputs and outputs of the behavior, so only `any` makes a common supertype.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyBehavior = Behavior<any, any, any, any>
