/** The effects of decisions, which run after their commits. */
import { Effect, Exit, type Fiber } from "effect"
import { type Address, type AnyBehavior, type Peers, shardOf, type Tagged } from "../actor/index.ts"
import type { Fork } from "../clock.ts"
import { InFlight } from "../in-flight/index.ts"

/** The steps of a message's life at which a test may end the process. */
export type MessageStep = "decided" | "committed" | "replied" | "performed"

/** An effect under way. */
interface Performance {
  readonly fiber: Fiber.Fiber<unknown>
  readonly address: Address
}

export class Effects {
  private readonly fibers = new InFlight<Performance>()
  /** Released shards: their next owners run the effects. */
  private readonly closed = new Set<number>()
  private readonly fork: Fork
  private readonly peers: Peers
  private readonly send: (address: Address, message: Tagged) => void
  private readonly step: ((step: MessageStep, address: Address) => void) | undefined
  private stopped = false

  constructor(
    fork: Fork,
    peers: Peers,
    send: (address: Address, message: Tagged) => void,
    step: ((step: MessageStep, address: Address) => void) | undefined
  ) {
    this.fork = fork
    this.peers = peers
    this.send = send
    this.step = step
  }

  get underWay(): number {
    return this.fibers.size
  }

  /** Starts each action. Its answer is sent to the actor; its defect is reported. */
  perform(
    behavior: AnyBehavior,
    address: Address,
    actions: ReadonlyArray<Tagged>,
    onDefect: (cause: unknown) => void
  ): void {
    if (this.closed.size > 0 && this.closed.has(shardOf(address))) return
    for (const action of actions) {
      if (this.stopped) return
      const fiber = this.fork(Effect.suspend(() => behavior.perform(action, address, this.peers)))
      const token = this.fibers.add({ fiber, address })
      fiber.addObserver((exit) => {
        if (!this.fibers.delete(token) || this.stopped) return
        this.step?.("performed", address)
        if (Exit.isFailure(exit)) return onDefect(exit.cause)
        // A message of the behavior's own; the registry has lost the type.
        if (exit.value !== undefined) this.send(address, exit.value as Tagged)
      })
    }
  }

  /** Interrupts the effects of a shard, and starts no more until the shard is opened. */
  close(shard: number): void {
    this.closed.add(shard)
    for (const [token, { address, fiber }] of this.fibers) {
      if (shardOf(address) !== shard) continue
      this.fibers.delete(token)
      fiber.interruptUnsafe()
    }
  }

  open(shard: number): void {
    this.closed.delete(shard)
  }

  /** Interrupts all effects: timers find them undone. */
  stop(): void {
    this.stopped = true
    for (const [, { fiber }] of this.fibers) fiber.interruptUnsafe()
  }
}
