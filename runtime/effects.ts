/** The effects of decisions, under way after their commits. */
import { Effect, Exit, type Fiber } from "effect"
import type { AnyBehaviour, Peers, Tagged } from "./actor.ts"
import type { Address } from "./address.ts"
import type { Fork } from "./deadline.ts"
import type { Step } from "./surroundings.ts"

export class Effects {
  private readonly fibers = new Set<Fiber.Fiber<unknown>>()
  private readonly fork: Fork
  private readonly peers: Peers
  private readonly tell: (address: Address, message: Tagged) => void
  private readonly step: ((step: Step, address: Address) => void) | undefined
  private stopped = false

  constructor(
    fork: Fork,
    peers: Peers,
    tell: (address: Address, message: Tagged) => void,
    step: ((step: Step, address: Address) => void) | undefined
  ) {
    this.fork = fork
    this.peers = peers
    this.tell = tell
    this.step = step
  }

  get underWay(): number {
    return this.fibers.size
  }

  /** Starts each action; what it answers is told to the actor, a defect of it is reported. */
  perform(
    behaviour: AnyBehaviour,
    address: Address,
    actions: ReadonlyArray<Tagged>,
    onDefect: (cause: unknown) => void
  ): void {
    for (const action of actions) {
      if (this.stopped) return
      const fiber = this.fork(Effect.suspend(() => behaviour.perform(action, address, this.peers)))
      this.fibers.add(fiber)
      fiber.addObserver((exit) => {
        this.fibers.delete(fiber)
        if (this.stopped) return
        this.step?.("performed", address)
        if (Exit.isFailure(exit)) return onDefect(exit.cause)
        // A message of the behaviour's own; the registry has lost the type.
        if (exit.value !== undefined) this.tell(address, exit.value as Tagged)
      })
    }
  }

  /** Breaks off what is under way: a wake-up finds it undone. */
  stop(): void {
    this.stopped = true
    for (const fiber of this.fibers) fiber.interruptUnsafe()
  }
}
