/**
 * The actor system of one node: it sends messages to actors on any node. It delivers a message for
 * a shard of this node in memory, and any other message through the transport to the shard's owner.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { askAsEffect, decodeInspection, type Inspection,
  type ReplyCallback } from "./activation/index.ts"
import type { Address, AskFailure, Peers, Tagged } from "./actor/index.ts"
import type { Clocks, Fork } from "./clock.ts"
import { type ClusterView, type NodeStatusApi, Placement } from "./cluster/index.ts"
import { inspectMessage, liftMessage, Node, type Snapshot, type SystemOptions } from "./node.ts"
import { type HintListener, Storage, type StorageApi, Transport } from "./ports/index.ts"
import { withTrace } from "./tracing.ts"

const nanosPerMs = 1_000_000

/**
 * A running node, for Effect: what {@link System} provides. Its asks fail with an `AskFailure`, and
 * send any message as it is; {@link askActor} checks it by its definition. A refusal is a reply.
 */
export interface SystemApi extends Peers {
  /**
   * `ask` by callback, for the hot path. It may call `done` before it returns. `trace` is a W3C
   * `traceparent`; `ask` takes it from the current span.
   */
  readonly askByCallback: <Message extends Tagged>(
    to: Address,
    message: Message,
    done: ReplyCallback,
    trace?: string
  ) => void
  /**
   * `ask` for a new actor, whose id was just created at random: the node that owns it does not
   * read the store first.
   */
  readonly askNew: Peers["ask"]
  /** Ids of the actors of a kind, ascending. */
  readonly scan: StorageApi["scan"]
  /** Calls the listener after each commit of the actor, on any node: a hint to read its log. */
  readonly watch: (about: Address, listener: HintListener) => () => void
  /** Ends an actor's quarantine, on any node; false if it had none. */
  readonly lift: (address: Address) => Effect.Effect<boolean, AskFailure>
  /** What an actor looks like at the node that owns it, for people; its kind must be known. */
  readonly inspect: (address: Address) => Effect.Effect<Inspection, AskFailure>
  /**
   * Passivates an actor now, if it is live on this node and idle; returns whether it was. Its next
   * message loads it from the store.
   */
  readonly passivate: (address: Address) => boolean
  /** The newest format of messages that every node reads: newer ones are not sent yet. */
  readonly format: () => number
  /** The load and the metrics of this node now: actors by kind, timers, quarantines, commits. */
  readonly snapshot: () => Snapshot
  /** The nodes and the owner of each shard, as this node last observed them. */
  readonly cluster: () => ClusterView
  /** The status of each node, for people. */
  readonly nodeStatus: NodeStatusApi
  /**
   * Hands over the shards if there are other nodes. Then refuses new messages, and waits for
   * commits, effects and its own asks of other nodes under way. Each of the two steps takes
   * `limits.drainMs` at most.
   */
  readonly drain: Effect.Effect<void>
}

/**
 * The actor system of a node, as a service of Effect. `actorSystem` provides it for definitions,
 * and `System.layer` for behaviors on any ports. The node runs for as long as its layer.
 */
export class System extends Context.Service<System, SystemApi>()("restante/runtime/System") {
  /** Starts a node on the provided storage, transport and placement. */
  static readonly layer = (
    options: SystemOptions
  ): Layer.Layer<System, never, Storage | Transport | Placement> =>
    Layer.effect(
      System,
      Effect.gen(function*() {
        const storage = yield* Storage
        const transport = yield* Transport
        const placement = yield* Placement
        const clock = yield* Clock.Clock
        const services = yield* Effect.context<never>()
        const fork: Fork = Effect.runForkWith(services)
        const clocks: Clocks = {
          nowMs: () => clock.currentTimeMillisUnsafe(),
          monotonicMs: () => Number(clock.monotonicTimeNanosUnsafe()) / nanosPerMs
        }
        const node = new Node(options, { storage, transport, placement }, fork, clocks)
        yield* Effect.acquireRelease(
          Effect.sync(() => node.start()),
          (stop) => Effect.sync(stop)
        )
        const api: SystemApi = {
          ask: (to, message) =>
            withTrace((trace) => askAsEffect((done) => node.ask(to, message, done, trace))),
          askNew: (to, message) =>
            withTrace((trace) => askAsEffect((done) => node.ask(to, message, done, trace, true))),
          askByCallback: (to, message, done, trace) => node.ask(to, message, done, trace),
          read: (of, from, limit, charsMax) => node.read(of, from, limit, charsMax),
          scan: storage.scan,
          watch: transport.watch,
          lift: (address) =>
            Effect.map(
              askAsEffect((done) => node.ask(address, liftMessage, done)),
              (lifted) => lifted === true
            ),
          inspect: (address) =>
            Effect.flatMap(
              askAsEffect((done) => node.ask(address, inspectMessage, done)),
              (reply) => decodeInspection(address, reply)
            ),
          passivate: (address) => node.passivate(address),
          format: () => node.format(),
          snapshot: () => node.snapshot(),
          cluster: placement.view,
          nodeStatus: placement.nodeStatus,
          drain: Effect.promise(() => node.drain())
        }
        return api
      })
    )
}
