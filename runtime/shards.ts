/** The shards that this node holds: their messages are served, their wake-ups known. */
import { Exit, Scope } from "effect"
import { runWithin, type Timekeeping } from "./deadline.ts"
import type { Limits } from "./limits.ts"
import type { PlacementApi } from "./placement/placement.ts"
import type { StorageApi } from "./ports/storage.ts"
import type { Serve, ServedShard, TransportApi } from "./ports/transport.ts"
import type { TimerService } from "./timers.ts"

interface Holding {
  readonly storage: StorageApi
  readonly transport: TransportApi
  readonly limits: Limits
  readonly serve: Serve
  readonly timers: TimerService
  readonly onTaken: (shard: number) => void
  /** Resolves when nothing of the shard is under way any more. */
  readonly onLost: (shard: number) => Promise<void>
  readonly onFault: (cause: unknown) => void
}

export class Shards {
  private readonly scopes = new Map<number, Scope.Closeable>()
  /** Shards whose wake-ups are to be read, in order. */
  private readonly toLoad = new Set<number>()
  private loading = 0
  private readonly time: Timekeeping
  private readonly holding: Holding

  constructor(time: Timekeeping, holding: Holding) {
    this.time = time
    this.holding = holding
  }

  /** Takes and gives up shards as the placement says; the result gives up all. */
  follow(placement: PlacementApi): () => void {
    const unfollow = placement.follow(
      (shard, held) => {
        const isHeld = () => placement.holds(shard)
        this.take(shard, held === undefined ? held : { ...held, isHeld })
      },
      (shard) => this.lose(shard)
    )
    return () => {
      unfollow()
      for (const shard of [...this.scopes.keys()]) void this.close(shard)
    }
  }

  /** Reads the wake-ups of a shard, a few shards at a time. */
  load(shard: number): void {
    this.toLoad.add(shard)
    this.loadNext()
  }

  private take(shard: number, held: ServedShard | undefined): void {
    if (this.scopes.has(shard)) return
    const scope = Scope.makeUnsafe()
    const { onFault, onTaken, serve, timers, transport } = this.holding
    this.scopes.set(shard, scope)
    onTaken(shard)
    this.time.fork(Scope.provide(transport.serve(shard, serve, held), scope)).addObserver(
      (exit) => {
        if (Exit.isFailure(exit)) onFault(exit.cause)
      }
    )
    timers.take(shard, held?.orphaned === true)
  }

  private loadNext(): void {
    const { limits, storage, timers } = this.holding
    for (const shard of this.toLoad) {
      if (this.loading >= limits.shardLoadsMax) return
      this.toLoad.delete(shard)
      const scope = this.scopes.get(shard)
      if (scope === undefined) continue
      this.loading++
      const call = () => storage.wakes(shard, timers.loadLimit(shard))
      runWithin(this.time, call, limits.storageDeadlineMs, (exit) => {
        this.loading--
        // A shard that was lost and taken again has a load of its own: this one is too old.
        const current = () => this.scopes.get(shard) === scope
        if (current() && !(Exit.isSuccess(exit) && timers.loaded(shard, exit.value))) {
          this.time.later(limits.wakeRetryMs, () => current() && this.load(shard))
        }
        this.loadNext()
      })
    }
  }

  private async lose(shard: number): Promise<void> {
    await Promise.all([this.close(shard), this.holding.onLost(shard)])
  }

  private close(shard: number): Promise<void> {
    const scope = this.scopes.get(shard)
    this.scopes.delete(shard)
    if (scope === undefined) return Promise.resolve()
    return new Promise((resolve) => {
      this.time.fork(Scope.close(scope, Exit.void)).addObserver(() => resolve())
    })
  }
}
