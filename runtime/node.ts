/**
 * One node: its activations with their supervisor, timers and committer; the shards that it owns;
 * and its asks to other nodes.
 */
import { Effect, Exit, Scope } from "effect"
import { Activation, type ActivationContext, ActivationDirectory, askAsEffect, Effects, ignoreReply,
  inspect, type MessageStep, type Quarantine, RecallReads, type ReplyCallback,
  Supervisor } from "./activation/index.ts"
import { type Address, type AnyBehavior, AskTimeout, decodeMessage, encodeAskFailure, encodeMessage,
  encodeReply, firstFormat, keyOf, NoOwner, Overloaded, type Peers, Quarantined, shardOf,
  type Tagged, UnknownMessage } from "./actor/index.ts"
import { type Clocks, type Fork, laterWith, runWithin, waitUntil } from "./clock.ts"
import type { PlacementApi } from "./cluster/index.ts"
import { Committer, withLeaseGuard } from "./commit/index.ts"
import { type Limits, makeLimits } from "./limits.ts"
import { logFailure } from "./logged-failure.ts"
import { RuntimeMetrics } from "./metrics.ts"
import type { Serve, ShardClaim, StorageApi, Traffic, TransportApi } from "./ports/index.ts"
import { RemoteAsks } from "./remote-ask.ts"
import { type Deliver, type FiredTimer, TimerService } from "./timers/index.ts"
import { type Traces, withTrace } from "./tracing.ts"

/** Is notified of each message that a node delivers to its actors: for tools of development. */
export interface MessageObserver {
  /**
   * A message arrives at the actor: sent by anybody, or of its timer or a signal. The result is
   * called with its outcome, just before its sender. Neither may throw.
   */
  readonly onMessage: (to: Address, message: Tagged, isFromTimer: boolean) => ReplyCallback
}

export interface SystemOptions {
  readonly behaviors: ReadonlyArray<AnyBehavior>
  /** The newest format that the behaviors read, from 1, which is the default. */
  readonly format?: number
  readonly limits?: Partial<Limits>
  /** For tests that end the process at a step of a message's life. */
  readonly step?: (step: MessageStep, address: Address) => void
  /** Undefined: nobody observes the messages, at no cost. */
  readonly observer?: MessageObserver | undefined
  /** Records the spans of asks and commits; undefined: the node exports no traces. */
  readonly traces?: Traces | undefined
}

/** The current load and the metrics of one node. */
export interface Snapshot {
  /** By kind: actors in memory, and their messages without a reply yet. */
  readonly activations: ReadonlyMap<string, { readonly active: number; readonly queued: number }>
  /** Timers in memory: the earliest ones of each shard; the store may have more. */
  readonly timers: number
  /** Timers in memory that are due but not yet delivered. */
  readonly timersDue: number
  /** Timers that are delivered but not yet answered. */
  readonly timersInFlight: number
  readonly earliestTimerMs: number | undefined
  /** Quarantines in the shards that this node owns. */
  readonly quarantined: ReadonlyArray<Quarantine>
  readonly metrics: RuntimeMetrics
  /** What the node has sent to NATS, and whether it is connected; undefined without NATS. */
  readonly traffic: Traffic | undefined
}

interface Ports {
  readonly storage: StorageApi
  readonly transport: TransportApi
  readonly placement: PlacementApi
}

/** Ends the quarantine of its actor; a node accepts it from any client of the transport too. */
export const liftMessage: Tagged = { _tag: "LiftQuarantine" }

/** Asks for the Inspection of its actor, likewise. */
export const inspectMessage: Tagged = { _tag: "InspectActor" }

/** The messages that the node answers itself. */
const ofNode = [liftMessage, inspectMessage].map((message) => ({
  message,
  /** The beginning of its envelope; the format may follow. */
  envelope: encodeMessage(message).slice(0, -1)
}))

/** Whether a message of this tag never reaches an actor, whatever it is for. */
export const isOfNode = (tag: string): boolean => ofNode.some(({ message }) => message._tag === tag)

export class Node {
  private readonly supervisor: Supervisor
  private readonly metrics = new RuntimeMetrics()
  private readonly directory: ActivationDirectory
  private readonly behaviors: ReadonlyMap<string, AnyBehavior>
  private readonly limits: Limits
  private readonly formatMax: number
  private readonly placement: PlacementApi
  private readonly traffic: TransportApi["traffic"]
  private readonly context: ActivationContext
  private readonly shards: Shards
  private readonly remote: RemoteAsks
  private draining = false
  private stopped = false

  constructor(options: SystemOptions, ports: Ports, fork: Fork, clocks: Clocks) {
    const limits = makeLimits(options.limits)
    this.behaviors = new Map(options.behaviors.map((one) => [one.kind, one]))
    this.limits = limits
    this.formatMax = options.format ?? firstFormat
    this.placement = ports.placement
    this.traffic = ports.transport.traffic
    this.supervisor = new Supervisor(limits, clocks)
    this.directory = new ActivationDirectory(limits, clocks.monotonicMs, ({ address }) => {
      this.metrics.of(address.kind).passivations++
    })
    this.context = this.makeContext(ports, fork, clocks.nowMs, options)
    this.remote = new RemoteAsks(this.context, ports.transport, {
      deliverIfOwned: (to, message, done, trace) => this.deliverIfOwned(to, message, done, trace),
      onFault: (to, cause) => this.log("the receiver of a reply threw an error", cause, to)
    })
    this.shards = new Shards(this.context, ports.transport, {
      serve: (to, envelope, trace) => this.serve(to, envelope, trace),
      onTaken: (shard) => {
        this.context.effects.open(shard)
        this.remote.taken(shard)
      },
      onLost: (shard) => this.releaseShard(shard),
      onFault: (cause) => this.log("a shard is not served", cause)
    })
    if (options.observer !== undefined) this.observe(options.observer)
  }

  /** `isNew`: the actor cannot exist yet. */
  ask(to: Address, message: Tagged, done: ReplyCallback, trace?: string, isNew = false): void {
    if (!this.placement.owns(shardOf(to))) return this.remote.ask(to, message, done, trace)
    if (this.draining) return done(this.overloaded(to), undefined)
    this.deliver(to, message, done, undefined, isNew, trace)
  }

  /** Answers a message that came from another node, or from any client of the transport. */
  serve(to: Address, envelope: string, trace?: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      if (!this.placement.owns(shardOf(to))) return resolve(undefined)
      const done: ReplyCallback = (failure, reply) =>
        // NoOwner: the node lost the shard before it decided the message.
        resolve(failure?._tag === "NoOwner" ? undefined : this.encodeOutcome(to, failure, reply))
      if (this.draining) return done(this.overloaded(to), undefined)
      const message = this.decode(to, envelope)
      message instanceof UnknownMessage
        ? done(message, undefined)
        : this.deliver(to, message, done, undefined, false, trace)
    })
  }

  /** Passivates an actor that is live on this node, if it is idle; returns whether it was. */
  passivate(address: Address): boolean {
    return this.directory.passivateIdle(keyOf(address))
  }

  /** The newest format that every node of the cluster reads. */
  format(): number {
    return this.placement.format() ?? this.formatMax
  }

  /** Reads the log of any actor. */
  read(...[of, from, limit, charsMax]: Parameters<Peers["read"]>): ReturnType<Peers["read"]> {
    const isOwn = this.placement.owns(shardOf(of)) && this.directory.get(keyOf(of)) !== undefined
    return this.context.storage.read(of, from, limit, isOwn, charsMax)
  }

  start(): () => void {
    const { committer, effects, fork, storage, timers } = this.context
    const sweep = Effect.sync(() => {
      this.directory.sweep()
      this.supervisor.sweep()
      timers.sweep()
    })
    const sweeper = fork(Effect.forever(Effect.andThen(
      Effect.sleep(this.limits.sweepMs),
      logFailure(sweep, "the sweep of idle actors and timers failed; the node retries")
    )))
    const unfollow = this.shards.follow(this.placement)
    const unfollowLateCommits = storage.followLateCommits?.((shard) => timers.rescan(shard))
    return () => {
      this.draining = true
      this.stopped = true
      sweeper.interruptUnsafe()
      unfollow()
      unfollowLateCommits?.()
      timers.stop()
      this.remote.stop()
      this.directory.end(undefined, ({ address }) => this.noOwner(address))
      committer.stop()
      effects.stop()
    }
  }

  async drain(): Promise<void> {
    const { committer, effects, timers } = this.context
    const { drainMs, timerResolutionMs } = this.limits
    // During the handoff, this node or the next owners accept messages.
    let hasLeft = false
    const leaving = this.placement.leave()?.finally(() => hasLeft = true)
    if (leaving !== undefined) await waitUntil(() => hasLeft, drainMs, timerResolutionMs)
    this.draining = true
    timers.stop()
    const over = () =>
      [...this.directory.values()].every(({ queued }) => queued === 0) &&
      effects.underWay === 0 && committer.isIdle && this.remote.underWay === 0
    await waitUntil(over, drainMs, timerResolutionMs)
  }

  snapshot(): Snapshot {
    const { context: { timers }, directory, metrics, placement, supervisor } = this
    const activations = new Map<string, { active: number; queued: number }>()
    for (const kind of this.behaviors.keys()) {
      activations.set(kind, { active: 0, queued: 0 })
      metrics.of(kind)
    }
    for (const { address, queued } of directory.values()) {
      const kind = activations.get(address.kind)
      if (kind === undefined) continue
      kind.active++
      kind.queued += queued
    }
    return {
      activations,
      timers: timers.size,
      timersDue: timers.overdue(),
      timersInFlight: timers.inFlightCount,
      earliestTimerMs: timers.earliestMs,
      // A quarantine does not move with its shard to the next owner.
      quarantined: supervisor.quarantined()
        .filter(({ address }) => placement.owns(shardOf(address))),
      metrics,
      traffic: this.traffic?.()
    }
  }

  private makeContext(
    { placement, storage: unguarded, transport }: Ports,
    fork: Fork,
    nowMs: () => number,
    { step, traces }: SystemOptions
  ): ActivationContext {
    const { limits, metrics } = this
    const time = { fork, later: laterWith(fork) }
    const storage = withLeaseGuard(unguarded, placement)
    const onFault = (cause: unknown) => this.log("a group commit failed", cause)
    const sendMessage = (to: Address, message: Tagged) => this.send(to, message, ignoreReply)
    const peers: Peers = {
      ask: (to, message) =>
        withTrace((trace) => askAsEffect((done) => this.send(to, message, done, trace))),
      read: (of, from, limit, charsMax) => this.read(of, from, limit, charsMax)
    }
    const load = (shard: number) => this.shards.load(shard)
    const deliver: Deliver = (to, fired, onResult) => this.fireTimer(to, fired, onResult)
    return {
      ...time,
      limits,
      storage,
      recallReads: new RecallReads(limits, storage.streamOf),
      nowMs,
      formatMax: this.formatMax,
      format: () => this.format(),
      step,
      traces,
      committer: new Committer(time, storage, limits, metrics.commits, onFault),
      effects: new Effects(fork, peers, sendMessage, step),
      timers: new TimerService(fork, nowMs, limits, deliver, load, storage.streamOf),
      onFault: (address, cause) =>
        this.log("a defect that does not restart the actor", cause, address),
      onDefect: (address, cause) => this.onDefect(address, cause),
      onChange: (address, head) => transport.announce(address, String(head)),
      onSize: (actor) => this.directory.resize(actor),
      onEnd: (actor) => this.directory.delete(actor)
    }
  }

  private deliver(
    to: Address,
    message: Tagged,
    done: ReplyCallback,
    due?: FiredTimer,
    isNew = false,
    trace?: string
  ): void {
    const key = keyOf(to)
    let actor = this.directory.get(key)
    if (message === liftMessage) return done(undefined, this.supervisor.lift(to))
    if (message === inspectMessage) {
      return inspect(this.context, this.supervisor, to, actor, done)
    }
    if (actor === undefined) {
      const quarantined = this.supervisor.refusal(key)
      if (quarantined !== undefined) return done(quarantined, undefined)
      const behavior = this.behaviors.get(to.kind)
      if (behavior === undefined) return done(this.unknown(to, "no such kind"), undefined)
      const metrics = this.metrics.of(to.kind)
      actor = new Activation(to, behavior, this.context, metrics, isNew)
      if (!this.directory.add(actor)) return done(this.overloaded(to), undefined)
      metrics.activations++
    }
    actor.deliver(message, done, due, trace)
  }

  /** Replaces `deliver` by one that notifies the observer too: a node without one pays nothing. */
  private observe({ onMessage }: MessageObserver): void {
    const deliver = this.deliver.bind(this)
    this.deliver = (to, message, done, due, isNew, trace) => {
      if (ofNode.some((own) => own.message === message)) return deliver(to, message, done)
      const onOutcome = onMessage(to, message, due !== undefined)
      const ended: ReplyCallback = (failure, reply) => {
        onOutcome(failure, reply)
        done(failure, reply)
      }
      deliver(to, message, ended, due, isNew, trace)
    }
  }

  private decode(to: Address, envelope: string): Tagged | UnknownMessage {
    for (const own of ofNode) if (envelope.startsWith(own.envelope)) return own.message
    const behavior = this.behaviors.get(to.kind)
    return behavior === undefined
      ? this.unknown(to, "no such kind")
      : decodeMessage(behavior, keyOf(to), envelope, this.context.formatMax)
  }

  private encodeOutcome(to: Address, ...[failure, reply]: Parameters<ReplyCallback>): string {
    try {
      return failure === undefined ? encodeReply(reply) : encodeAskFailure(failure)
    } catch (cause) {
      this.log("a reply cannot be sent", cause, to)
      // The message may be committed, so a failure that says "unchanged" would be wrong.
      const deadlineMs = this.context.limits.askDeadlineMs
      return encodeAskFailure(new AskTimeout({ key: keyOf(to), deadlineMs }))
    }
  }

  /** Sends an effect's message. A draining node accepts it: the drain waits for the effect. */
  private send(to: Address, message: Tagged, done: ReplyCallback, trace?: string): void {
    if (this.stopped) return done(this.noOwner(to), undefined)
    if (!this.deliverIfOwned(to, message, done, trace)) this.remote.ask(to, message, done, trace)
  }

  /** Delivers a message to a shard that this node owns; false for any other shard. */
  private deliverIfOwned(
    to: Address,
    message: Tagged,
    done: ReplyCallback,
    trace: string | undefined
  ): boolean {
    const owned = this.placement.owns(shardOf(to))
    if (owned) this.deliver(to, message, done, undefined, false, trace)
    return owned
  }

  private fireTimer(
    to: Address,
    fired: FiredTimer,
    onResult: Parameters<Deliver>[2]
  ): void {
    const behavior = this.behaviors.get(to.kind)
    if (behavior === undefined) return onResult("never")
    if (this.draining || !this.placement.owns(shardOf(to))) return onResult("later")
    // The message belongs to this behavior; the map of behaviors has lost the type.
    const message = behavior.timerMessage as Tagged
    const done: ReplyCallback = (failure) => onResult(failure === undefined ? "answered" : "later")
    this.deliver(to, message, done, fired)
  }

  /** Answers the accepted messages, commits what is decided, and ends the shard's activations. */
  private async releaseShard(shard: number): Promise<void> {
    const { effects, limits: { handoffMs, timerResolutionMs }, timers } = this.context
    timers.drop(shard)
    effects.close(shard)
    const actors = this.directory.of(shard)
    const over = () => this.stopped || actors.every(({ queued }) => queued === 0)
    // If another node may own the shard, this node stops serving it.
    const isLost = () => this.placement.heldClaim(shard) === undefined
    await waitUntil(() => over() || isLost(), handoffMs, timerResolutionMs)
    this.directory.end(shard, ({ address }) => this.noOwner(address))
    // Every commit in flight ends by the store's deadline.
    await waitUntil(over, Infinity, timerResolutionMs)
  }

  private onDefect(address: Address, cause: unknown): number | Quarantined {
    const metrics = this.metrics.of(address.kind)
    metrics.restarts++
    const delayMs = this.supervisor.restart(address, cause)
    this.log(delayMs === undefined ? "actor quarantined" : "actor restarts", cause, address)
    if (delayMs !== undefined) return delayMs
    metrics.quarantines++
    const key = keyOf(address)
    const retryAfterMs = this.limits.quarantineRetryMs
    return this.supervisor.refusal(key) ?? new Quarantined({ key, retryAfterMs })
  }

  private log(text: string, cause: unknown, address?: Address): void {
    const line = Effect.logError(text, cause)
    this.context.fork(
      address === undefined ? line : Effect.annotateLogs(line, { actor: keyOf(address) })
    )
  }

  private overloaded(to: Address): Overloaded {
    return new Overloaded({ key: keyOf(to), retryAfterMs: this.limits.overloadRetryMs })
  }

  private noOwner(to: Address): NoOwner {
    return new NoOwner({ key: keyOf(to), retryAfterMs: this.limits.overloadRetryMs })
  }

  private unknown(to: Address, detail: string): UnknownMessage {
    return new UnknownMessage({ key: keyOf(to), detail })
  }
}

/** The node's part of {@link Shards}. */
interface ShardEvents {
  readonly serve: Serve
  readonly onTaken: (shard: number) => void
  /** Resolves when nothing of the shard is under way. */
  readonly onLost: (shard: number) => Promise<void>
  readonly onFault: (cause: unknown) => void
}

/** The shards that this node owns: it serves their messages and loads their timers. */
export class Shards {
  private readonly scopes = new Map<number, Scope.Closeable>()
  /** Shards whose timers are to be loaded, in order. */
  private readonly toLoad = new Set<number>()
  /** Shards whose timers are being loaded: one load of a shard at a time. */
  private readonly loading = new Set<number>()
  /** How many loads each stream of the store has: a stream that stalls delays no other one. */
  private readonly loads: Array<number> = []
  private readonly context: ActivationContext
  private readonly transport: TransportApi
  private readonly events: ShardEvents

  constructor(context: ActivationContext, transport: TransportApi, events: ShardEvents) {
    this.context = context
    this.transport = transport
    this.events = events
  }

  /** Takes and releases shards as the placement reports; the returned function releases all. */
  follow(placement: PlacementApi): () => void {
    const unfollow = placement.follow(
      (shard, tenure) => {
        const isHeld = () => placement.heldClaim(shard) === tenure?.claim
        this.take(shard, tenure === undefined ? tenure : { ...tenure, isHeld })
      },
      (shard) => this.lose(shard)
    )
    return () => {
      unfollow()
      for (const shard of [...this.scopes.keys()]) void this.close(shard)
    }
  }

  /** Loads the timers of a shard, a few shards of each stream at a time. */
  load(shard: number): void {
    this.toLoad.add(shard)
    this.loadNext()
  }

  private take(shard: number, claim: ShardClaim | undefined): void {
    if (this.scopes.has(shard)) return
    const scope = Scope.makeUnsafe()
    const { onFault, onTaken, serve } = this.events
    this.scopes.set(shard, scope)
    onTaken(shard)
    const serving = Scope.provide(this.transport.serve(shard, serve, claim), scope)
    this.context.fork(serving).addObserver((exit) => {
      if (Exit.isFailure(exit)) onFault(exit.cause)
    })
    // The store may yet keep commits that an earlier owner gave up.
    this.context.timers.take(shard, claim?.after !== undefined)
  }

  private loadNext(): void {
    const { limits, storage, timers } = this.context
    for (const shard of this.toLoad) {
      const stream = storage.streamOf(shard)
      const loads = this.loads[stream] ?? 0
      if (loads >= limits.shardLoadsMax || this.loading.has(shard)) continue
      this.toLoad.delete(shard)
      const scope = this.scopes.get(shard)
      if (scope === undefined) continue
      this.loading.add(shard)
      this.loads[stream] = loads + 1
      const { from, limit, untilMs } = timers.beginLoad(shard)
      const call = () => storage.timers(shard, limit, from, untilMs)
      runWithin(this.context, call, limits.storageDeadlineMs, (exit) => {
        this.loading.delete(shard)
        this.loads[stream] = (this.loads[stream] ?? 1) - 1
        // A shard that was lost and taken again has its own load: this one is outdated.
        const current = () => this.scopes.get(shard) === scope
        if (current() && !(Exit.isSuccess(exit) && timers.finishLoad(shard, exit.value))) {
          this.context.later(limits.timerRetryMs, () => current() && this.load(shard))
        }
        this.loadNext()
      })
    }
  }

  private async lose(shard: number): Promise<void> {
    await Promise.all([this.close(shard), this.events.onLost(shard)])
  }

  private close(shard: number): Promise<void> {
    const scope = this.scopes.get(shard)
    this.scopes.delete(shard)
    if (scope === undefined) return Promise.resolve()
    return new Promise((resolve) => {
      this.context.fork(Scope.close(scope, Exit.void)).addObserver(() => resolve())
    })
  }
}
