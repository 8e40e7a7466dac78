/**
 * One node: the actors in memory, their supervisor, timers and committer, and the way to the
 * actors of other nodes.
 */
import { Effect, Exit, Result } from "effect"
import { Activation } from "./activation.ts"
import type { AnyBehaviour, Peers, Tagged } from "./actor.ts"
import { type Address, keyOf, shardOf } from "./address.ts"
import { Committer } from "./committer.ts"
import { type Fork, laterWith } from "./deadline.ts"
import { Effects } from "./effects.ts"
import { decodeReply, encodeAskFailure, encodeMessage, encodeReply } from "./envelope.ts"
import { ActorDefect, NoOwner, Overloaded, Quarantined, UnknownMessage } from "./errors.ts"
import { ForeignWakes } from "./foreign.ts"
import { type Limits, makeLimits } from "./limits.ts"
import { Measures, type Snapshot } from "./measures.ts"
import { asked, type Done, type Due } from "./pending.ts"
import type { PlacementApi } from "./placement/placement.ts"
import type { StorageApi } from "./ports/storage.ts"
import type { TransportApi } from "./ports/transport.ts"
import { Residents } from "./residents.ts"
import { Shards } from "./shards.ts"
import { Supervisor } from "./supervisor.ts"
import type { Step, Surroundings } from "./surroundings.ts"
import { type Deliver, Timers } from "./timers.ts"

export interface SystemOptions {
  readonly behaviours: ReadonlyArray<AnyBehaviour>
  readonly limits?: Partial<Limits>
  /** For tests that end the process at a step of a message's life. */
  readonly step?: (step: Step, address: Address) => void
}

interface Ports {
  readonly storage: StorageApi
  readonly transport: TransportApi
  readonly placement: PlacementApi
}

const ignore: Done = () => {}

export class Node {
  readonly supervisor: Supervisor
  private readonly measures = new Measures()
  private readonly residents: Residents
  private readonly behaviours: ReadonlyMap<string, AnyBehaviour>
  private readonly limits: Limits
  private readonly placement: PlacementApi
  private readonly transport: TransportApi
  private readonly around: Surroundings
  private readonly shards: Shards
  private draining = false
  private stopped = false

  constructor(options: SystemOptions, ports: Ports, fork: Fork, nowMs: () => number) {
    const limits = makeLimits(options.limits)
    this.behaviours = new Map(options.behaviours.map((one) => [one.kind, one]))
    this.limits = limits
    this.placement = ports.placement
    this.transport = ports.transport
    this.supervisor = new Supervisor(limits, nowMs)
    this.residents = new Residents(limits, nowMs, ({ address }) => {
      this.measures.of(address.kind).passivations++
    })
    this.around = this.surroundings(ports.storage, fork, nowMs, options.step)
    this.shards = new Shards(this.around, {
      storage: ports.storage,
      transport: ports.transport,
      limits,
      serve: (to, envelope) => this.serve(to, envelope),
      timers: this.around.timers,
      onLost: (shard) => this.lose(shard),
      onFault: (cause) => this.log("a shard is not served", cause)
    })
  }

  askWith(to: Address, message: Tagged, done: Done): void {
    if (!this.placement.owns(shardOf(to))) return this.askOwner(to, message, done)
    if (this.draining) return done(this.overloaded(to), undefined)
    this.deliver(to, message, done)
  }

  /** Answers a message that came from another node, or from any client of the transport. */
  serve(to: Address, envelope: string): Promise<string> {
    return new Promise((resolve) => {
      const done: Done = (failure, reply) => resolve(this.enveloped(to, failure, reply))
      if (!this.placement.owns(shardOf(to))) return done(this.noOwner(to), undefined)
      if (this.draining) return done(this.overloaded(to), undefined)
      const message = this.decode(to, envelope)
      message instanceof UnknownMessage
        ? done(message, undefined)
        : this.deliver(to, message, done)
    })
  }

  start(): () => void {
    const { committer, effects, fork, timers } = this.around
    const sweep = Effect.map(Effect.sleep(this.limits.sweepMs), () => {
      this.residents.sweep()
      this.supervisor.sweep()
    })
    const sweeper = fork(Effect.forever(sweep))
    const unfollow = this.shards.follow(this.placement)
    return () => {
      this.draining = true
      this.stopped = true
      sweeper.interruptUnsafe()
      unfollow()
      timers.stop()
      this.residents.end(undefined, ({ address }) => this.noOwner(address))
      committer.stop()
      effects.stop()
    }
  }

  async drain(): Promise<void> {
    this.draining = true
    const { committer, effects, timers } = this.around
    timers.stop()
    const endMs = performance.now() + this.limits.drainMs
    while (performance.now() < endMs) {
      const left = [...this.residents.values()].some(({ queued }) => queued > 0)
      if (!left && effects.underWay === 0 && committer.quiet) return
      await new Promise((resolve) => setTimeout(resolve, this.limits.timerResolutionMs))
    }
  }

  snapshot(): Snapshot {
    const resident = new Map<string, { active: number; queued: number }>()
    for (const kind of this.behaviours.keys()) {
      resident.set(kind, { active: 0, queued: 0 })
      this.measures.of(kind)
    }
    for (const { address, queued } of this.residents.values()) {
      const kind = resident.get(address.kind)
      if (kind === undefined) continue
      kind.active++
      kind.queued += queued
    }
    return {
      resident,
      wakeUps: this.around.timers.size,
      earliestWakeUpMs: this.around.timers.earliestMs,
      quarantined: this.supervisor.quarantined(),
      measures: this.measures
    }
  }

  private surroundings(
    storage: StorageApi,
    fork: Fork,
    nowMs: () => number,
    step: Surroundings["step"]
  ): Surroundings {
    const { limits, measures } = this
    const time = { fork, later: laterWith(fork) }
    const onFault = (cause: unknown) => this.log("the store broke off", cause)
    const tell = (to: Address, message: Tagged) => this.tell(to, message, ignore)
    const peers: Peers = {
      ask: (to, message) => asked((done) => this.tell(to, message, done)),
      read: storage.read
    }
    const load = (shard: number) => this.shards.load(shard)
    const wakeUp: Deliver = (to, landed) => this.wakeUp(to, landed)
    return {
      ...time,
      limits,
      storage,
      nowMs,
      step,
      committer: new Committer(time, storage, limits, measures.commits, onFault),
      effects: new Effects(fork, peers, tell, step),
      timers: new Timers(fork, nowMs, limits, wakeUp, load),
      foreign: new ForeignWakes(),
      onFault: (address, cause) => this.log("defect beside an actor", cause, address),
      onDefect: (address, cause) => this.onDefect(address, cause),
      onChange: (address, head) => this.transport.announce(address, String(head)),
      onEnd: (actor) => this.residents.delete(actor)
    }
  }

  private deliver(to: Address, message: Tagged, done: Done, due?: Due): void {
    const key = keyOf(to)
    let actor = this.residents.get(key)
    if (actor === undefined) {
      const resting = this.supervisor.refusal(key)
      if (resting !== undefined) return done(resting, undefined)
      const behaviour = this.behaviours.get(to.kind)
      if (behaviour === undefined) return done(this.unknown(to, "no such kind"), undefined)
      const measures = this.measures.of(to.kind)
      actor = new Activation(to, behaviour, this.around, measures)
      if (!this.residents.add(actor)) return done(this.overloaded(to), undefined)
      measures.activations++
    }
    actor.deliver(message, done, due)
  }

  private decode(to: Address, envelope: string): Tagged | UnknownMessage {
    const behaviour = this.behaviours.get(to.kind)
    if (behaviour === undefined) return this.unknown(to, "no such kind")
    try {
      // A behaviour's own decoder says what its messages are; here they are just tagged.
      return behaviour.decodeMessage(JSON.parse(envelope)) as Tagged
    } catch (cause) {
      return this.unknown(to, cause instanceof Error ? cause.message : "not a message")
    }
  }

  private enveloped(to: Address, ...[failure, reply]: Parameters<Done>): string {
    try {
      return failure === undefined ? encodeReply(reply) : encodeAskFailure(failure)
    } catch (cause) {
      this.log("a reply cannot be sent", cause, to)
      return encodeAskFailure(new ActorDefect({ key: keyOf(to) }))
    }
  }

  private askOwner(to: Address, message: Tagged, done: Done): void {
    const { askDeadlineMs } = this.limits
    const request = Effect.suspend(() =>
      this.transport.request(to, encodeMessage(message), askDeadlineMs)
    )
    this.around.fork(Effect.result(request)).addObserver((exit) => {
      try {
        if (Exit.isFailure(exit)) return done(this.noOwner(to), undefined)
        const sent = exit.value
        const answer = Result.isFailure(sent) ? sent : decodeReply(keyOf(to), sent.success)
        Result.isSuccess(answer)
          ? done(undefined, answer.success)
          : done(answer.failure, undefined)
      } catch (cause) {
        this.log("a reply's receiver threw", cause, to)
      }
    })
  }

  /** What an effect says: taken while the node drains, since the drain waits for the effect. */
  private tell(to: Address, message: Tagged, done: Done): void {
    if (this.stopped) return done(this.noOwner(to), undefined)
    this.placement.owns(shardOf(to))
      ? this.deliver(to, message, done)
      : this.askOwner(to, message, done)
  }

  private wakeUp(to: Address, landed: Parameters<Deliver>[1]): void {
    const behaviour = this.behaviours.get(to.kind)
    if (behaviour === undefined) return landed("never")
    if (this.draining || !this.placement.owns(shardOf(to))) return landed("later")
    // Its own behaviour's message; the registry has lost the type.
    const message = behaviour.wakeUp as Tagged
    const { foreign, nowMs } = this.around
    const due: Due = { foreign: foreign.answeredBy(keyOf(to), nowMs()) }
    const done: Done = (failure) => landed(failure === undefined ? "answered" : "later")
    this.deliver(to, message, done, due)
  }

  private lose(shard: number): void {
    this.around.timers.drop(shard)
    this.around.foreign.drop(shard)
    this.residents.end(shard, ({ address }) => this.noOwner(address))
  }

  private onDefect(address: Address, cause: unknown): number | Quarantined {
    const measures = this.measures.of(address.kind)
    measures.restarts++
    const delayMs = this.supervisor.restart(address)
    this.log(delayMs === undefined ? "actor quarantined" : "actor restarts", cause, address)
    if (delayMs !== undefined) return delayMs
    measures.quarantines++
    const key = keyOf(address)
    const retryAfterMs = this.limits.quarantineRetryMs
    return this.supervisor.refusal(key) ?? new Quarantined({ key, retryAfterMs })
  }

  private log(what: string, cause: unknown, address?: Address): void {
    const line = Effect.logError(what, cause)
    this.around.fork(
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
