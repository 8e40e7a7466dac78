/** The actor as an activation has it in memory: it may be ahead of what is durable. */
import type { AnyBehavior, DecisionContext, Tagged } from "./actor.ts"
import { type Address, shardOf } from "./address.ts"
import { type AnyDecision, decideOn } from "./cell.ts"
import { DeduplicationWindow } from "./recent.ts"
import type { Recovered } from "./recover.ts"

const findNothing = (): undefined => undefined

export class ActorImage {
  state: Tagged
  /** Of the state record as it was last read or written. */
  revision = 0
  head = 0
  readonly behaviour: AnyBehavior
  private readonly shard: number
  private recent: DeduplicationWindow | undefined = undefined
  private readonly context: { -readonly [Known in keyof DecisionContext]: DecisionContext[Known] }

  constructor(behaviour: AnyBehavior, address: Address) {
    this.behaviour = behaviour
    this.shard = shardOf(address)
    this.context = { self: address, nowMs: 0, head: 0, hint: undefined, recent: findNothing }
    this.state = behaviour.initial
  }

  /** Takes over what the store has. */
  recovered({ head, recent, revision, state }: Recovered): void {
    this.state = state
    this.revision = revision
    this.head = head
    this.recent = recent
    this.context.recent = recent?.find ?? findNothing
  }

  /** What the store has of an actor that has never been, or has vanished. */
  blank(): Recovered {
    const { initial, recall } = this.behaviour
    const state = recall?.restore(initial, []) ?? initial
    return { state, revision: 0, head: 0, recent: recall && new DeduplicationWindow(recall.items) }
  }

  /** See {@link decideOn}. */
  decide(message: Tagged, nowMs: number, hint: number | undefined): AnyDecision | undefined {
    this.context.nowMs = nowMs
    this.context.hint = hint
    this.context.head = this.head
    return decideOn(this.behaviour, this.state, message, this.context, this.shard)
  }

  /** Notes the keys of items appended from the number `first` on; throws what `keyOf` throws. */
  remember(values: ReadonlyArray<string>, first: number): void {
    const { recall } = this.behaviour
    if (this.recent === undefined || recall === undefined) return
    for (let at = 0; at < values.length; at++) {
      const key = recall.keyOf(values[at] ?? "")
      if (key !== undefined) this.recent.add(key, first + at)
    }
  }
}
