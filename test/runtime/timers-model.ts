/** A model of timers on a store with late acknowledgements and slow scans. */
import { Clock, Effect, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect } from "vitest"
import { type Address, fromKey, keyOf, makeLimits, shardOf } from "../../runtime/index.ts"
import { soleStream, type TimerPage } from "../../runtime/ports/storage.ts"
import { type DeliveryResult, TimerService } from "../../runtime/timers/timer-service.ts"
import { at } from "./probe.ts"

const shard = shardOf(at("a"))

type Load = ReturnType<TimerService["beginLoad"]>

/** The earliest of some timers, as a store returns them. */
const earliestOf = (
  stored: Iterable<readonly [string, number]>,
  of: number,
  { from, limit }: Load
): TimerPage => {
  const isAfter = ({ address, atMs }: { address: Address; atMs: number }): boolean =>
    from === undefined || atMs > from.atMs || (atMs === from.atMs && keyOf(address) > from.after)
  const timers = [...stored].map(([key, atMs]) => ({
    address: fromKey(key),
    atMs,
    signalRevision: undefined
  }))
    .filter((timer) => shardOf(timer.address) === of && isAfter(timer))
    .sort((one, other) =>
      one.atMs - other.atMs || (keyOf(one.address) < keyOf(other.address) ? -1 : 1)
    )
  const last = timers[limit - 1]
  const next = last === undefined || timers.length === limit
    ? undefined
    : { atMs: last.atMs, after: keyOf(last.address) }
  return { timers: timers.slice(0, limit), next, hasMoreSignals: false }
}

export type Step =
  | { readonly _tag: "Set"; readonly id: string; readonly inMs: number }
  | { readonly _tag: "Defer"; readonly id: string; readonly inMs: number }
  | { readonly _tag: "Clear"; readonly id: string }
  | { readonly _tag: "Acknowledge" | "Scan" | "Lose" | "Take" }
  | { readonly _tag: "EndDelivery"; readonly result: DeliveryResult }
  | { readonly _tag: "Pass"; readonly ms: number }

const idOf = fc.nat(40).map((n) => (n % 3 === 0 ? `b=${n}` : `a=${n}`))
const inMs = fc.integer({ min: -50, max: 300 })
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ _tag: fc.constant("Set" as const), id: idOf, inMs }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Defer" as const), id: idOf, inMs }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Clear" as const), id: idOf }) },
  {
    weight: 8,
    arbitrary: fc.record({ _tag: fc.constantFrom("Acknowledge" as const, "Scan" as const) })
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constantFrom("Lose" as const, "Take" as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      _tag: fc.constant("EndDelivery" as const),
      result: fc.constantFrom("answered" as const, "answered" as const, "later" as const)
    })
  },
  {
    weight: 5,
    arbitrary: fc.record({ _tag: fc.constant("Pass" as const), ms: fc.nat({ max: 80 }) })
  }
)

export class TimersModel {
  readonly stored = new Map<string, number>()
  readonly timers: TimerService
  readonly inFlight: Array<
    { readonly address: Address; readonly onResult: (result: DeliveryResult) => void }
  > = []
  readonly limits = makeLimits({
    shardTimersMax: 4,
    timersInFlightMax: 3,
    timerBatchMax: 2,
    timerRetryMs: 40
  })
  private readonly runtime = ManagedRuntime.make(TestClock.layer())
  private readonly clock = this.runtime.runSync(Clock.clockWith(Effect.succeed))
  /** Durable commits that are not yet acknowledged. */
  private readonly unacknowledged: Array<() => void> = []
  private loads: Array<
    { readonly shard: number; readonly seen: Map<string, number>; begun: Load | undefined }
  > = []
  private deferrals = 0

  constructor() {
    const nowMs = () => this.nowMs
    this.timers = new TimerService(
      this.runtime.runFork,
      nowMs,
      this.limits,
      (address, _signal, onResult) => {
        this.inFlight.push({ address, onResult })
        expect(this.inFlight.length).toBeLessThanOrEqual(this.limits.timersInFlightMax)
      },
      (of) => this.load(of),
      soleStream
    )
    this.take()
  }

  get nowMs(): number {
    return this.clock.currentTimeMillisUnsafe()
  }

  get idle(): boolean {
    return this.unacknowledged.length + this.loads.length + this.inFlight.length === 0
  }

  async play(one: Step): Promise<void> {
    if (one._tag === "Set") this.commit(at(one.id), this.nowMs + one.inMs)
    else if (one._tag === "Clear") this.commit(at(one.id), null)
    else if (one._tag === "Defer") {
      this.deferrals++
      this.timers.defer(at(one.id), this.nowMs + one.inMs)
    } else if (one._tag === "Acknowledge") this.unacknowledged.shift()?.()
    else if (one._tag === "Scan") this.scan()
    else if (one._tag === "Take") this.take()
    else if (one._tag === "Lose") {
      this.loads = this.loads.filter((load) => load.shard !== shard)
      this.timers.drop(shard)
    } else if (one._tag === "EndDelivery") this.endDelivery(one.result)
    else if (one._tag === "Pass") await this.pass(one.ms)
    // Two shards; timers that are set during a load are stored.
    const most = 2 * 2 * this.limits.shardTimersMax + this.deferrals + 100 * this.loads.length
    expect(this.timers.size).toBeLessThanOrEqual(most + this.limits.timersInFlightMax * 20)
  }

  pass(ms: number): Promise<void> {
    return this.runtime.runPromise(TestClock.adjust(ms))
  }

  async end(): Promise<void> {
    this.timers.stop()
    await this.runtime.dispose()
  }

  take(): void {
    for (const id of ["a", "b"]) {
      this.loads = this.loads.filter((load) => load.shard !== shardOf(at(id)))
      this.timers.take(shardOf(at(id)))
    }
  }

  private commit(address: Address, atMs: number | null): void {
    const key = keyOf(address)
    atMs === null ? this.stored.delete(key) : this.stored.set(key, atMs)
    this.unacknowledged.push(() => this.timers.set(address, atMs))
  }

  /** Reads the first half of the keys, or the second half, which ends the load. */
  private scan(): void {
    const load = this.loads[0]
    if (load === undefined) return
    load.begun ??= this.timers.beginLoad(load.shard)
    const first = load.seen.size === 0
    load.seen.set(first ? "probe/a=begun" : "probe/a=ended", Number.NaN)
    for (const [key, atMs] of this.stored) {
      if (key.length % 2 === (first ? 0 : 1)) load.seen.set(key, atMs)
    }
    if (first) return
    this.loads.shift()
    const seen = [...load.seen].filter(([, atMs]) => !Number.isNaN(atMs))
    const page = earliestOf(seen, load.shard, load.begun)
    if (!this.timers.finishLoad(load.shard, page)) this.load(load.shard)
  }

  /** At most one load of a shard waits while another is under way. */
  private load(of: number): void {
    const isWaiting = this.loads.some((load) => load.shard === of && load.begun === undefined)
    if (!isWaiting) this.loads.push({ shard: of, seen: new Map(), begun: undefined })
  }

  private endDelivery(result: DeliveryResult): void {
    const one = this.inFlight.shift()
    if (one === undefined) return
    const { address, onResult } = one
    if (result === "answered") {
      // As if the commit were acknowledged at once: the reply follows it.
      while (this.unacknowledged.length > 0) this.unacknowledged.shift()?.()
      const atMs = this.stored.get(keyOf(address))
      const next = atMs === undefined || atMs <= this.nowMs ? null : atMs
      if (next === null) this.stored.delete(keyOf(address))
      this.timers.set(address, next)
    }
    onResult(result)
  }
}
