/** The shards that this node holds: their messages are served, their wake-ups known. */
import { Exit, Scope } from "effect"
import { runWithin, type Timekeeping } from "./deadline.ts"
import type { Limits } from "./limits.ts"
import type { PlacementApi } from "./placement/placement.ts"
import type { StorageApi, Wake } from "./ports/storage.ts"
import type { Serve, TransportApi } from "./ports/transport.ts"

interface Holding {
  readonly storage: StorageApi
  readonly transport: TransportApi
  readonly limits: Limits
  readonly serve: Serve
  readonly onWake: (wake: Wake) => void
  readonly onLost: (shard: number) => void
  readonly onFault: (cause: unknown) => void
}

export class Shards {
  private readonly scopes = new Map<number, Scope.Closeable>()
  private readonly time: Timekeeping
  private readonly holding: Holding

  constructor(time: Timekeeping, holding: Holding) {
    this.time = time
    this.holding = holding
  }

  /** Takes and gives up shards as the placement says; the result gives up all. */
  follow(placement: PlacementApi): () => void {
    const unfollow = placement.follow((shard) => this.take(shard), (shard) => this.lose(shard))
    return () => {
      unfollow()
      for (const shard of [...this.scopes.keys()]) this.close(shard)
    }
  }

  private take(shard: number): void {
    if (this.scopes.has(shard)) return
    const scope = Scope.makeUnsafe()
    const { onFault, serve, transport } = this.holding
    this.scopes.set(shard, scope)
    this.time.fork(Scope.provide(transport.serve(shard, serve), scope)).addObserver((exit) => {
      if (Exit.isFailure(exit)) onFault(exit.cause)
    })
    this.loadWakes(shard, scope)
  }

  private loadWakes(shard: number, scope: Scope.Closeable): void {
    const { limits, onWake, storage } = this.holding
    const call = () => storage.wakes(shard)
    runWithin(this.time, call, limits.storageDeadlineMs, (exit) => {
      if (this.scopes.get(shard) !== scope) return
      if (Exit.isSuccess(exit)) return exit.value.forEach(onWake)
      this.time.later(limits.wakeRetryMs, () => {
        if (this.scopes.get(shard) === scope) this.loadWakes(shard, scope)
      })
    })
  }

  private lose(shard: number): void {
    this.close(shard)
    this.holding.onLost(shard)
  }

  private close(shard: number): void {
    const scope = this.scopes.get(shard)
    this.scopes.delete(shard)
    if (scope !== undefined) this.time.fork(Scope.close(scope, Exit.void))
  }
}
