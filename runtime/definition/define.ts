/**
 * The definition of a kind of actors: its states, messages and actions as Schema, its table, and
 * its effects, declared once. The types of replies, the encoding of states, the checks of messages
 * and the guards of timers follow from it.
 */
import { Cause, Effect, Schema } from "effect"
import { type Address, address, type Behavior, keyOf, type Peers, type Tagged,
  type Variant } from "../actor/index.ts"
import type { ActorDecision } from "./actor-decision.ts"
import { askAsPeer } from "./asks.ts"
import { type AnyTable, type CellContext, runtimeTable } from "./cells.ts"
import { InvalidMessage } from "./errors.ts"
import { isOfNode } from "../node.ts"
import type { Migration } from "./migration.ts"
import { emptyMeta, envelopeField, RecordCodec } from "./record.ts"
import type { ActorProtocol, ActorRef, PeerAsk } from "./reference.ts"
import { casesOf, changesValues, fieldNames, type JsonValue, type ReplyValue, schemaOf, type Shape,
  type ShapeEncoded, type ShapeValue } from "./shapes.ts"

/** One cell for each state and message; a missing cell does not compile. */
export type ActorTable<State extends Tagged, Message extends Tagged, Action, Item> = {
  readonly [S in State["_tag"]]: {
    readonly [M in Message["_tag"]]: (
      state: Variant<State, S>,
      message: Variant<Message, M>,
      context: CellContext
    ) => ActorDecision<State, ReplyValue, Action, Item>
  }
}

/** What an effect gets besides its action. */
export interface PerformContext {
  /** The actor that performs it. */
  readonly self: Address
  /** Aborted when the node stops, or gives the actor to another node. */
  readonly signal: AbortSignal
  /** Asks another actor; the message may be one of its internal ones. */
  readonly ask: PeerAsk
  /** Other actors as effects, for an action that is an Effect. */
  readonly peers: Peers
}

/** What an effect results in: a message to its actor, or nothing. */
type Performed<Message> =
  | Message
  | void
  | Promise<Message | void>
  | Effect.Effect<Message | void, unknown>

/** The effect of each action. */
export type Performers<Action extends Tagged, Message> = {
  readonly [A in Action["_tag"]]: (
    action: Variant<Action, A>,
    context: PerformContext
  ) => Performed<Message>
}

/** The reply of a decision. */
type ReplyOf<Decided> = Decided extends ActorDecision<infer _State, infer Reply, infer _A, infer _I>
  ? Reply
  : never

/** The replies of a table, by the tag of the message. */
export type RepliesOf<Table, Message extends Tagged> = {
  readonly [M in Message["_tag"]]: {
    [S in keyof Table]: M extends keyof Table[S]
      ? Table[S][M] extends (...input: never) => infer Decided ? ReplyOf<Decided> : never
      : never
  }[keyof Table]
}

/** How actors recognize repeated messages, by the last items of their logs. */
export interface ItemKeys<Item> {
  /** How many of the last items `context.findDuplicate` searches. */
  readonly items: number
  /** The key of an item, such as an idempotency key; undefined for none. */
  readonly keyOf: (item: Item) => string | undefined
}

/** Accepts the shapes whose values are JSON: messages travel to other nodes as they are. */
type JsonShape<S> = ShapeValue<S> extends JsonValue
  ? ShapeValue<S> extends ShapeEncoded<S> ? unknown : "a field is another value in JSON"
  : "a field is not a JSON value"

/** What a definition consists of; see {@link defineActor}. */
export interface ActorOptions<
  S extends Shape,
  M extends Shape,
  A extends Shape,
  Item,
  Timer,
  Table,
  Effects,
  Internal = never
> {
  /** The states: fields by tag, or a Schema. No field is called `$`. */
  readonly state: S
  /** The messages, whose fields are JSON values, as they are. A new field must be optional. */
  readonly messages: M & JsonShape<M>
  /** The actions of effects. They stay in memory, and may hold any value. */
  readonly actions?: A
  /** The items of the actor's log. */
  readonly log?: Schema.Codec<Item, unknown>
  readonly recall?: ItemKeys<Item>
  /** The state of an actor that does not exist yet. */
  readonly initial: ShapeValue<S>
  /** The tag of the message that the actor receives when its timer is due. Nobody can send it. */
  readonly timer?: Timer
  /**
   * The tags of the messages that only effects may send: those of this actor as their result, and
   * those of any actor by `ask` of their context. `node.ask` and {@link askActor} refuse them, by
   * type and at run time, and HTTP cannot expose them. It is no protection against what sends
   * without this definition: another definition of the same kind, `node.system.ask`, or a program
   * with the secret of the cluster.
   */
  readonly internal?: ReadonlyArray<Internal>
  /** The older versions of `state`, the first one first; see {@link migration}. */
  readonly migrations?: ReadonlyArray<Migration>
  /**
   * The version of the states to write: by default the newest, which is the number of migrations
   * plus 1. A program that writes an older one reads the newest too. So start that program on all
   * nodes first, and then one that writes the newest: each can be rolled back to the one before.
   */
  readonly writes?: number
  readonly table: Table
  /** The effect of each action: a function that may return a promise, or an Effect. */
  readonly perform?: Effects
}

/** The behavior of a definition, as the runtime takes it. */
type BehaviorOf<S extends Shape, M extends Shape, A extends Shape> = Behavior<
  ShapeValue<S>,
  ShapeValue<M>,
  unknown,
  ShapeValue<A>
>

/** A kind of actors: call it with an id for a reference to one. */
export interface ActorDefinition<
  S extends Shape,
  M extends Shape,
  A extends Shape,
  Message extends Tagged,
  Replies,
  Item,
  Internal extends Tagged = Tagged
> extends ActorProtocol<Message, Replies, Item, Internal> {
  /** `[A-Za-z0-9_=-]+`, 200 characters at most; throws a TypeError for another id. */
  (id: string): ActorRef<Message, Replies, Item, Internal>
  /** The behavior for the runtime, and for tests of it. */
  readonly behavior: BehaviorOf<S, M, A>
  /** The Schema of all its messages, the timer's too: for what describes them to others. */
  readonly messageSchema: Schema.Codec<Tagged, unknown>
}

/** The message of timers of a definition without one: no cell takes it. */
const noTimerMessage: Tagged = { _tag: "TimerFired" }

const assertNames = (kind: string, shapes: ReadonlyArray<Shape | undefined>): void => {
  for (const shape of shapes) {
    if (shape === undefined || fieldNames(shape)?.has(envelopeField) !== true) continue
    throw new TypeError(`a state of ${kind} has a field ${envelopeField}: give it another name`)
  }
}

const assertPerformers = (kind: string, { actions = {}, perform = {} }: AnyOptions): void => {
  // The tags of a Schema are not known here; its types name them.
  for (const tag of Schema.isSchema(actions) ? [] : Object.keys(actions)) {
    if (Object.hasOwn(perform, tag)) continue
    throw new TypeError(`${kind} has no effect for ${tag}: add it to \`perform\``)
  }
}

/**
 * A message is checked wherever it passes: by who asks, and by the node of its actor. So checking
 * must not change it.
 */
const assertMessages = (kind: string, messages: Shape): void => {
  const shapes = Schema.isSchema(messages)
    ? [["a message", messages] as const]
    : Object.entries(messages).map(([tag, fields]) => [tag, { [tag]: fields }] as const)
  for (const [name, shape] of shapes) {
    if (isOfNode(name)) {
      throw new TypeError(`${kind} has a message ${name}, which its node takes: rename it`)
    }
    if (!changesValues(schemaOf(shape).ast)) continue
    throw new TypeError(
      `the Schema of ${name} of ${kind} changes a value or adds one: give it the Schema of its ` +
        "JSON, such as Schema.String or Schema.optionalKey, and convert it in the cell"
    )
  }
}

/** The types require each cell; a program may run without having its types checked. */
const assertCells = (kind: string, { messages, state, table }: AnyOptions): void => {
  if (Schema.isSchema(state) || Schema.isSchema(messages)) return
  for (const from of Object.keys(state)) {
    const missing = Object.keys(messages).find((tag) => typeof table[from]?.[tag] !== "function")
    if (missing === undefined) continue
    throw new TypeError(`the table of ${kind} has no cell for ${missing} in ${from}: add it`)
  }
}

/** The types require these too. */
const assertInternal = (kind: string, { internal = [], messages, timer }: AnyOptions): void => {
  for (const tag of internal) {
    if (tag === timer) {
      throw new TypeError(`${kind} takes ${tag} from its timer only: leave it out of \`internal\``)
    }
    if (casesOf(schemaOf(messages)).some(([name]) => name === tag)) continue
    throw new TypeError(`${kind} has no message ${tag}: correct \`internal\``)
  }
}

type AnyPerformer = (action: Tagged, context: PerformContext) => Performed<Tagged>

/** The runtime's `perform`: a failure is logged, and does not restart the actor. */
const performWith = (kind: string, performers: Readonly<Record<string, AnyPerformer>>) =>
(
  action: Tagged,
  self: Address,
  peers: Peers
): Effect.Effect<Tagged | void> => {
  const performer = performers[action._tag]
  if (performer === undefined) {
    const detail = `${kind} has no effect for ${action._tag}: add it to \`perform\``
    return Effect.die(new TypeError(detail))
  }
  return Effect.gen(function*() {
    const services = yield* Effect.context<never>()
    const ask = askAsPeer(peers, Effect.runForkWith(services))
    const performed = yield* Effect.tryPromise({
      try: async (signal) => {
        const result = performer(action, { self, signal, ask, peers })
        // An effect runs in this fiber; only promises are awaited here.
        return Effect.isEffect(result)
          ? { effect: result }
          : { effect: undefined, value: await result }
      },
      catch: (error) => error
    })
    return performed.effect === undefined ? performed.value : yield* performed.effect
  }).pipe(
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.logWarning(
          `the effect ${action._tag} of ${keyOf(self)} failed; only an attempt is repeated`,
          cause
        )
    )
  )
}

/** Texts of log items, by their Schema. */
const itemCodec = (schema: Schema.Codec<unknown, unknown>) => {
  const codec = Schema.toCodecJson(schema)
  const encode = Schema.encodeUnknownSync(codec)
  const decode = Schema.decodeUnknownSync(codec)
  return {
    encode: (item: unknown): string => JSON.stringify(encode(item)),
    decode: (text: string): unknown => decode(JSON.parse(text))
  }
}

/** Checks messages; the timer's is refused, because only the runtime sends it. */
const messageChecks = (kind: string, { internal, messages, timer }: AnyOptions) => {
  const decode = Schema.decodeUnknownSync(schemaOf(messages))
  const ofEffects = new Set(internal)
  const checkPeerMessage = (input: unknown): Tagged => {
    let message: Tagged
    try {
      message = decode(input)
    } catch (cause) {
      const lines = cause instanceof Error ? cause.message : String(cause)
      const detail = lines.replaceAll(/\s+/g, " ")
      const text = `${kind} does not take this message: ${detail}. Send one of its definition`
      throw new InvalidMessage(text, { cause })
    }
    if (message._tag !== timer) return message
    throw new InvalidMessage(`${kind} takes ${timer} from its timer only: send another message`)
  }
  const checkMessage = (input: unknown): Tagged => {
    const message = checkPeerMessage(input)
    const { _tag: tag } = message
    if (!ofEffects.has(tag)) return message
    throw new InvalidMessage(`${kind} takes ${tag} from effects only: send another message`)
  }
  return { checkMessage, checkPeerMessage }
}

/** The options of any definition: inside, its types are not known. */
interface AnyOptions {
  readonly state: Shape
  readonly messages: Shape
  readonly actions?: Shape
  readonly log?: Schema.Codec<unknown, unknown>
  readonly recall?: ItemKeys<unknown>
  readonly initial: Tagged
  readonly timer?: string
  readonly internal?: ReadonlyArray<string>
  readonly migrations?: ReadonlyArray<Migration>
  readonly writes?: number
  readonly table: AnyTable
  readonly perform?: Readonly<Record<string, AnyPerformer>>
}

const behaviorOf = (
  kind: string,
  options: AnyOptions,
  check: (input: unknown) => Tagged,
  items: ReturnType<typeof itemCodec> | undefined
): Behavior<Tagged, Tagged, unknown, Tagged> => {
  const { initial, migrations = [], perform = {}, recall, state, timer, writes } = options
  const hasTimer = timer !== undefined
  const record = new RecordCodec({ kind, state, migrations, writes, hasTimer })
  return {
    kind,
    // An object of its own: the actors without a record share it.
    initial: hasTimer ? record.withMeta({ ...initial }, emptyMeta) : initial,
    table: runtimeTable(options.table, { kind, record, timer, encodeItem: items?.encode }),
    encode: record.encode,
    decode: record.decode,
    decodeMessage: check,
    ...(recall === undefined || items === undefined ? {} : {
      recall: {
        items: recall.items,
        keyOf: (text: string) => recall.keyOf(items.decode(text)),
        restore: (state: Tagged) => state,
        restoresInParts: true
      }
    }),
    timerMessage: hasTimer ? { _tag: timer } : noTimerMessage,
    perform: performWith(kind, perform)
  }
}

const definitionOf = (kind: string, options: AnyOptions) => {
  const { internal = [], log, messages, migrations = [], state } = options
  assertNames(kind, [state, ...migrations.map(({ state }) => state)])
  assertPerformers(kind, options)
  assertMessages(kind, messages)
  assertInternal(kind, options)
  assertCells(kind, options)
  const items = log === undefined ? undefined : itemCodec(log)
  const checks = messageChecks(kind, options)
  const protocol = {
    kind,
    internal: [...internal],
    ...checks,
    decodeItem: (text: string): unknown => {
      if (items !== undefined) return items.decode(text)
      throw new TypeError(`${kind} has no Schema for the items of its log: add \`log\``)
    },
    // The node of an actor cannot know whether an effect of another node sent a message.
    behavior: behaviorOf(kind, options, checks.checkPeerMessage, items),
    messageSchema: schemaOf(messages)
  }
  const reference = (id: string) => {
    // It throws for an id that is none. A copy by a spread takes longer than the check.
    address(kind, id)
    return { kind, id, protocol }
  }
  return Object.assign(reference, protocol)
}

/**
 * Defines a kind of actors. `kind` is its name in addresses, `[a-z][a-z-]*`; it must not change.
 * Throws a TypeError or RangeError when the parts contradict each other.
 */
export const defineActor = <
  const S extends Shape,
  const M extends Shape,
  const Table extends ActorTable<ShapeValue<S>, ShapeValue<M>, ShapeValue<A>, Item>,
  const Effects extends Performers<ShapeValue<A>, ShapeValue<M>>,
  const A extends Shape = Record<never, never>,
  Item = never,
  const Timer extends ShapeValue<M>["_tag"] = never,
  const Internal extends ShapeValue<M>["_tag"] = never
>(
  kind: string,
  options: ActorOptions<S, M, A, Item, Timer, Table, Effects, Internal>
): ActorDefinition<
  S,
  M,
  A,
  Exclude<ShapeValue<M>, { readonly _tag: Timer | Internal }>,
  RepliesOf<Table, Exclude<ShapeValue<M>, { readonly _tag: Timer }>>,
  Item,
  Extract<ShapeValue<M>, { readonly _tag: Internal }>
> => {
  // Inside, the types of the definition are those of any definition; its callers see their own.
  type Defined = ReturnType<typeof defineActor<S, M, Table, Effects, A, Item, Timer, Internal>>
  return definitionOf(kind, options as unknown as AnyOptions) as unknown as Defined
}
