/** The regular look at the actors of a node. */
import { Clock, Effect, Layer, ManagedRuntime } from "effect"
import { afterAll, expect, it } from "vitest"
import { singleNodePlacement, System } from "../../runtime/index.ts"
import { memoryStorage } from "../../runtime/memory/storage.ts"
import { memoryTransport } from "../../runtime/memory/transport.ts"
import { at, probe } from "./probe.ts"

let faults = 0

/** The real clock, which throws in sweeps, as often as `faults` says. */
const faulty = Layer.effect(
  Clock.Clock,
  Effect.map(Clock.Clock, (clock) => ({
    ...clock,
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
    monotonicTimeNanosUnsafe: () => {
      if (faults > 0 && new Error("where").stack?.includes("sweep") === true) {
        faults--
        throw new Error("planned")
      }
      return clock.monotonicTimeNanosUnsafe()
    },
    sleep: (duration) => clock.sleep(duration)
  } satisfies Clock.Clock))
)

const runtime = ManagedRuntime.make(
  System.layer({ behaviors: [probe()], limits: { sweepMs: 5, idleMs: 20 } }).pipe(
    Layer.provide([memoryStorage, memoryTransport, singleNodePlacement]),
    Layer.provide(faulty)
  )
)

afterAll(() => runtime.dispose())

it("passivates idle actors after a sweep that ended with a defect", async () => {
  const system = await runtime.runPromise(System)
  const active = () =>
    [...system.snapshot().activations.values()].reduce((sum, kind) => sum + kind.active, 0)
  await runtime.runPromise(system.ask(at("a"), { _tag: "Add", by: 1 }))
  await expect.poll(active).toBe(0)
  faults = 1
  await expect.poll(() => faults).toBe(0)
  await runtime.runPromise(system.ask(at("a"), { _tag: "Read" }))
  await expect.poll(active).toBe(0)
})
