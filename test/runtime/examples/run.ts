import { Effect, Layer } from "effect"
import { address, isRefusal, singleNodePlacement, System } from "../../../runtime/index.ts"
import { memoryStorage } from "../../../runtime/memory/storage.ts"
import { memoryTransport } from "../../../runtime/memory/transport.ts"
import { counter } from "./counter.ts"
import { limiter } from "./limiter.ts"

const node = System.layer({ behaviors: [counter, limiter] }).pipe(
  Layer.provide([memoryStorage, memoryTransport, singleNodePlacement])
)

export const program = Effect.gen(function*() {
  const system = yield* System
  const visits = address("counter", "visits")
  yield* system.ask(visits, { _tag: "Add", by: 2 })
  const count = yield* system.ask(visits, { _tag: "Add", by: 3 })

  const alice = address("limiter", "alice")
  let taken = 0
  while (!isRefusal(yield* system.ask(alice, { _tag: "Take" }))) taken++
  return `${String(count)} visits, ${taken} tokens` // "5 visits, 3 tokens"
}).pipe(Effect.provide(node))
