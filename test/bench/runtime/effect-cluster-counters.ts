/**
 * Counters of Effect Cluster in one process, whose messages and replies are stored in memory: the
 * nearest that it has to actors of this runtime on `memory()`.
 */
import { Effect, Layer, ManagedRuntime, Ref, Schema } from "effect"
import { ClusterSchema, Entity, TestRunner } from "effect/cluster"
import { Rpc } from "effect/rpc"
import type { Counters } from "./counters.ts"

const Counter = Entity.make("Counter", [
  Rpc.make("Add", { payload: { by: Schema.Int }, success: Schema.Int })
    .annotate(ClusterSchema.Persisted, true)
])

const handlers = Counter.toLayer(Effect.gen(function*() {
  const count = yield* Ref.make(0)
  return Counter.of({
    Add: ({ payload: { by } }) => Ref.updateAndGet(count, (current) => current + by)
  })
}))

export const effectClusterCounters = async (): Promise<Counters> => {
  const runtime = ManagedRuntime.make(Layer.provideMerge(handlers, TestRunner.layer))
  const counterOf = await runtime.runPromise(Counter.client)
  return {
    add: (id) => runtime.runPromise(counterOf(id).Add({ by: 1 })),
    stop: () => runtime.dispose()
  }
}
