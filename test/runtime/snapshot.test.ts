/** Node status, reasons of quarantines, and lifting a quarantine from another node. */
import { Cause, Effect, Exit, type Fiber, Layer, Logger, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, describe, expect, it } from "vitest"
import { laterWith } from "../../runtime/clock.ts"
import { makeNodeStatus } from "../../runtime/cluster/node-status.ts"
import { ownsAll } from "../../runtime/cluster/placement.ts"
import { shardOf } from "../../runtime/index.ts"
import { makeMemoryRegistry } from "../../runtime/memory/registry.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import type { RegistryApi } from "../../runtime/ports/registry.ts"
import { reasonOf } from "../../runtime/activation/supervisor.ts"
import { at } from "./probe.ts"
import { dropAll, start, until } from "./rig.ts"

afterEach(dropAll)

/** Everything in virtual time. */
const world = () => {
  const runtime = ManagedRuntime.make(Layer.merge(TestClock.layer(), Logger.layer([])))
  const fork = <A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> => runtime.runFork(effect)
  const registry = makeMemoryRegistry(laterWith(fork))
  return {
    registry,
    fork,
    run: <A>(effect: Effect.Effect<A>) => runtime.runPromise(effect),
    pass: (ms: number) => runtime.runPromise(TestClock.adjust(ms))
  }
}

describe("a node's status", () => {
  it("is published at once and every 3 s, and expires 10 s after the last write", async () => {
    const { fork, pass, registry, run } = world()
    const [a, b] = [makeNodeStatus(registry, fork, "a"), makeNodeStatus(registry, fork, "b")]
    expect(await run(b.read("a"))).toBeUndefined()
    let reported = "first"
    const stop = a.publish(() => reported)
    await pass(0)
    expect(await run(b.read("a"))).toBe("first")
    reported = "second"
    await pass(2_999)
    expect(await run(b.read("a"))).toBe("first")
    await pass(1)
    expect(await run(b.read("a"))).toBe("second")
    stop()
    await pass(9_999)
    expect(await run(b.read("a"))).toBe("second")
    await pass(1)
    expect(await run(b.read("a"))).toBeUndefined()
  })

  it("replaces the status of an earlier start of the node", async () => {
    const { fork, pass, registry, run } = world()
    const b = makeNodeStatus(registry, fork, "b")
    const end = makeNodeStatus(registry, fork, "a").publish(() => "before")
    await pass(0)
    expect(await run(b.read("a"))).toBe("before")
    end()
    makeNodeStatus(registry, fork, "a").publish(() => "after")
    await pass(0)
    expect(await run(b.read("a"))).toBe("after")
  })

  it("continues after a registry failure and after a defect in the text", async () => {
    const { fork, pass, registry, run } = world()
    let puts = 0
    const flaky: RegistryApi = {
      ...registry,
      put: (...put) => puts++ === 0 ? Effect.never : registry.put(...put)
    }
    let texts = 0
    const a = makeNodeStatus(flaky, fork, "a")
    a.publish(() => {
      if (texts++ === 1) throw new Error("as scripted")
      return `text ${texts}`
    })
    await pass(2_000)
    expect(await run(a.read("a"))).toBeUndefined()
    await pass(3_000)
    expect(await run(a.read("a"))).toBeUndefined()
    await pass(3_000)
    expect(await run(a.read("a"))).toBe("text 3")
  })

  it("is read for one second at most", async () => {
    const { fork, pass, registry } = world()
    const silent: RegistryApi = { ...registry, get: () => Effect.never }
    const read = fork(makeNodeStatus(silent, fork, "b").read("a"))
    await pass(999)
    expect(read.pollUnsafe()).toBeUndefined()
    await pass(1)
    expect(read.pollUnsafe()).toEqual(Exit.succeed(undefined))
  })
})

describe("the reason of a quarantine", () => {
  const secret = "~the-secret"

  it("has the error's name and place, without its message", () => {
    const thrown = new TypeError(`no reader at ${secret}\n    at secret/file.js:1`)
    expect(reasonOf(thrown)).toMatch(/^TypeError at runtime\/snapshot\.test\.ts:\d+$/)
    expect(reasonOf(Cause.die(thrown))).toBe(reasonOf(thrown))
    const named = new Error("x")
    named.name = `<b>${"n".repeat(200)}`
    named.stack = ""
    expect(reasonOf(named)).toBe(`b${"n".repeat(79)}`)
    expect(reasonOf(secret)).toBe("the cause is not an Error")
  })
})

describe("a quarantine", () => {
  it("is lifted from a node that does not own the actor", async () => {
    const transport = makeMemoryTransport()
    const shard = shardOf(at("a"))
    const owner = await start({ limits: { restartsMax: 1 } }, {
      transport,
      placement: {
        ...ownsAll,
        owns: (asked) => asked === shard,
        follow: (taken) => {
          taken(shard)
          return () => {}
        }
      }
    })
    const other = await start({}, {
      transport,
      placement: { ...ownsAll, owns: () => false, follow: () => () => {} }
    })
    const lift = () => Effect.runPromise(other.system.lift(at("a")))
    expect(await lift()).toBe(false)
    expect(await owner.ask(at("a"), { _tag: "Break" })).toBe("ActorDefect")
    await until(() => owner.system.snapshot().quarantined.length === 1)
    expect(other.system.snapshot().quarantined).toEqual([])
    expect(await other.ask(at("a"), { _tag: "Read" })).toBe("Quarantined")
    expect(await lift()).toBe(true)
    expect(await lift()).toBe(false)
    expect(await other.ask(at("a"), { _tag: "Read" })).toEqual({ count: 0, head: 0 })
  })
})
