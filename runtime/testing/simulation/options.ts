/** What a simulation runs, and what it checks. */
import type { Address, AnyBehavior, LogItem, Tagged } from "../../actor/index.ts"
import type { ApplyCommit, ClusterNoise, Fault, NodeSeams } from "../cluster/index.ts"
import type { Random } from "../time/index.ts"

/** A behavior, or a definition that has one. */
export type TestedActor = AnyBehavior | { readonly behavior: AnyBehavior }

/** The behavior of a tested actor. */
export const behaviorOf = (actor: TestedActor): AnyBehavior =>
  "behavior" in actor ? actor.behavior : actor

/** Random choices by the seed of a run. */
export interface Draw {
  /** A number from 0 (included) to 1 (excluded). */
  readonly number: Random
  /** A whole number from 0 (included) to `count` (excluded). */
  readonly below: (count: number) => number
  /** One element; throws a RangeError for an empty list. */
  readonly pick: <A>(all: ReadonlyArray<A>) => A
  /** True with this probability. */
  readonly chance: (probability: number) => boolean
}

/** Which request is drawn. */
export interface ClientTurn {
  /** The client's number, from 0. */
  readonly client: number
  /** How many requests were drawn before, of all clients. */
  readonly number: number
}

/** A reply that a client has received. */
export interface ReceivedReply {
  readonly to: Address
  readonly message: Tagged
  readonly reply: unknown
}

/** A request of a client to an actor. */
export interface SimulatedRequest {
  /** The actor, such as a reference of a definition; {@link request} types its messages. */
  readonly to: Address
  /**
   * The message, or a function that makes it of the replies that the client has received so far;
   * undefined: the client sends nothing.
   */
  readonly message: Tagged | ((received: ReadonlyArray<ReceivedReply>) => Tagged | undefined)
  /**
   * How often the client sends it at the most, each time to another node, until it has an answer;
   * 1 by default. Each attempt is an operation of its own: the actor may decide several.
   */
  readonly attempts?: number
}

/** One attempt of a client, with its outcome. */
export interface ClientAttempt {
  readonly client: string
  readonly to: Address
  readonly message: Tagged
  /** `ok`: answered; `fail`: certainly not decided; `info`: unknown. */
  readonly outcome: "ok" | "fail" | "info"
  /** The reply of an `ok`; a refusal is a reply. */
  readonly reply: unknown
  /** Why there is no reply: the tag of the failure. */
  readonly why: string | undefined
  /** True time of its start and end since the run began, ms. */
  readonly startMs: number
  readonly endMs: number
}

/** The stored actors and the attempts of clients, for invariants. */
export interface SimulationView<Services = unknown> {
  /** True time since the run began, ms. */
  readonly nowMs: number
  /** The stored state; the initial one of an actor without a record. */
  readonly stateOf: <State = unknown>(of: Address) => State
  /** The stored items of the actor's log, ascending: the first 100,000. */
  readonly logOf: (of: Address) => ReadonlyArray<LogItem>
  /** The actor's own timer, ms since the epoch; undefined without one. */
  readonly timerOf: (of: Address) => number | undefined
  /** Ids of the actors of a kind that have a record, ascending. */
  readonly idsOf: (kind: string) => ReadonlyArray<string>
  /** All attempts of clients that have ended, in the order of their ends. */
  readonly attempts: ReadonlyArray<ClientAttempt>
  /** What {@link SimulateOptions.services} made for this run. */
  readonly services: Services
}

/** What must hold. A check returns what is wrong; undefined when nothing is. */
export interface Invariant<Services = unknown> {
  readonly name: string
  /** After each commit, with the address of its actor. */
  readonly always?: (view: SimulationView<Services>, changed: Address) => string | undefined
  /** At the end, when the faults have ceased and the cluster is idle. */
  readonly atRest?: (view: SimulationView<Services>) => string | undefined
}

/** A sequential specification of an actor: what each message does, and what it answers. */
export interface ActorModel<State, Message extends Tagged, Reply> {
  readonly initial: State
  /**
   * The possible states after the message; none when this reply is impossible in this state.
   * `answer` is undefined when the client does not know the reply.
   */
  step(
    state: State,
    message: Message,
    answer: { readonly reply: Reply } | undefined
  ): ReadonlyArray<State>
  /** Equal exactly for equal states; JSON by default. */
  keyOf?(state: State): string
}

/** A model of any kind of actors. */
// The types are inputs and outputs of the model, so only `any` makes a common supertype.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyActorModel = ActorModel<any, any, any>

/** The noise of a cluster, and of calls of other services. */
export interface SimulationNoise extends ClusterNoise {
  /** Calls of {@link SimulatedHost.outside} that fail, get lost, or are late. */
  readonly outside: number
}

/** A process of a node, for behaviors whose effects call other services. */
export interface SimulatedHost {
  /** The node, and how often it has started. */
  readonly name: string
  readonly random: Random
  /**
   * Calls another service. With the probability of the noise the call fails: it was made or not,
   * or it is made later. It rejects with an `OutsideFailure` then. `what` names it in the trace.
   */
  readonly outside: <A>(what: string, call: () => A | Promise<A>) => Promise<A>
}

/**
 * What a simulation runs, under which faults, and what must hold. All times are simulated; a seed
 * determines all that is drawn.
 */
export interface SimulateOptions<Services = unknown> {
  /** The actors, or a function that makes them for each process of a node. */
  readonly behaviors:
    | ReadonlyArray<TestedActor>
    | ((host: SimulatedHost, services: Services) => ReadonlyArray<TestedActor>)
  /** Draws the next request. The requests of a seed are the same each time. */
  readonly clients: (draw: Draw, turn: ClientTurn) => SimulatedRequest
  /** Requests at the end of the run, one after the other, when the cluster is idle. */
  readonly lastRequests?: ReadonlyArray<SimulatedRequest>
  /** What must hold after each commit, or at the end. */
  readonly invariants?: ReadonlyArray<Invariant<Services>>
  /** How many seeds run, from 1 on; or which. 20 by default. */
  readonly seeds?: number | ReadonlyArray<number>
  /**
   * The models by which the answers of each actor must be linearizable, by kind. `"table"`: the
   * actor's own table is the model. By default nothing is compared with a model.
   */
  readonly model?: "table" | Readonly<Record<string, AnyActorModel | "table">>
  /** Makes, for each run, what is outside of the cluster: the other services of the actors. */
  readonly services?: () => Services
  /** Nodes of the cluster; 3 by default. */
  readonly nodes?: number
  /** Simulated time with clients and faults; 0.5 by default. */
  readonly minutes?: number
  /** Clients at once, each with one request at a time; 4 by default. */
  readonly clientCount?: number
  /** Requests of all clients in a simulated minute; 60 by default. */
  readonly requestsPerMinute?: number
  /** The kinds of faults that happen; all by default. */
  readonly faults?: ReadonlyArray<Fault["what"]>
  /** Fixes the probabilities of these kinds of noise; the seed draws the others. */
  readonly noise?: Partial<SimulationNoise>
  /** How long the cluster is left to itself at the end, simulated ms; 30,000 by default. */
  readonly restMs?: number
  /** Whether the work of the actors has ended. It is a violation if it does not become true. */
  readonly isAtRest?: (view: SimulationView<Services>) => boolean
  /** Replaces real parts of the runtime by broken ones, to test what a simulation finds. */
  readonly plant?: NodeSeams & { readonly apply?: ApplyCommit }
}
