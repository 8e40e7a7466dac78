/** Timers of definitions: due ticks, missed ones, attempts, and what a restart does with them. */
import { afterEach, describe, expect, it } from "vitest"
import { askActor } from "../../../runtime/definition/index.ts"
import { dueTimer, intervalOf, type MissedTicks } from "../../../runtime/definition/recurrence.ts"
import { become, defineActor, Schema, stay } from "../../../runtime/main.ts"
import { makeMemoryStorage } from "../../../runtime/memory/storage.ts"
import { run } from "../../suites/storage-probe.ts"
import { dropAll, type Rig, start, turns } from "../rig.ts"

afterEach(dropAll)

const minuteMs = 60_000
const hourMs = 60 * minuteMs

describe("a due timer", () => {
  it("that fires once has no next", () => {
    expect(dueTimer({ atMs: 100 }, 170)).toEqual({
      tick: { dueMs: 100, missed: 0 },
      next: undefined
    })
  })

  const due = (missed: MissedTicks, everyMs: number, lateByMs: number) => {
    const { next, tick } = dueTimer({ atMs: 0, interval: intervalOf(everyMs, missed) }, lateByMs)
    return { tick, nextMs: next?.atMs, passed: next?.interval?.passed }
  }

  it.each(["skip", "once", "all"] as const)("that is in time keeps its rhythm: %s", (missed) => {
    expect(due(missed, hourMs, 5)).toEqual({
      tick: { dueMs: 0, missed: 0 },
      nextMs: hourMs,
      passed: 0
    })
  })

  it("skips what is more than a minute late", () => {
    expect(due("skip", hourMs, minuteMs).tick).toEqual({ dueMs: 0, missed: 0 })
    expect(due("skip", hourMs, minuteMs + 1)).toEqual({
      tick: undefined,
      nextMs: hourMs,
      passed: 1
    })
    expect(due("skip", hourMs, 3.5 * hourMs)).toEqual({
      tick: undefined,
      nextMs: 4 * hourMs,
      passed: 4
    })
  })

  it("skips all but the current tick of a short interval", () => {
    expect(due("skip", 1_000, 10_500)).toEqual({
      tick: { dueMs: 10_000, missed: 10 },
      nextMs: 11_000,
      passed: 0
    })
  })

  it("delivers one tick for all that were missed", () => {
    expect(due("once", hourMs, 3.5 * hourMs)).toEqual({
      tick: { dueMs: 3 * hourMs, missed: 3 },
      nextMs: 4 * hourMs,
      passed: 0
    })
  })

  it("delivers all that were missed, one after the other", () => {
    expect(due("all", hourMs, 3.5 * hourMs)).toEqual({
      tick: { dueMs: 0, missed: 0 },
      nextMs: hourMs,
      passed: 0
    })
  })
})

const clockOf = (missed: MissedTicks) =>
  defineActor("clock", {
    state: { Stopped: {}, Running: { ticks: Schema.Array(Schema.String) } },
    messages: { Start: { firstMs: Schema.Int }, Stop: {}, Tick: {}, Look: {} },
    timer: "Tick",
    initial: { _tag: "Stopped" },
    table: {
      Stopped: {
        Start: (_, { firstMs }) =>
          become({ _tag: "Running", ticks: [] }).setInterval(hourMs, { missed, firstMs }),
        Stop: () => stay(),
        Tick: () => stay(),
        Look: () => stay().reply([])
      },
      Running: {
        Start: () => stay(),
        Stop: () => become({ _tag: "Stopped" }).setTimer(null),
        Tick: ({ ticks }, _, { tick }) =>
          become({
            _tag: "Running",
            ticks: [...ticks, `${(tick?.dueMs ?? 0) / hourMs}, missed ${tick?.missed}`]
          }),
        Look: ({ ticks }) => stay().reply(ticks)
      }
    }
  })

/** Virtual time that passes in steps, so that all that is due runs. */
const pass = async (rig: Rig, ms: number, steps = 1): Promise<void> => {
  for (let step = 0; step < steps; step++) {
    await rig.pass(ms / steps)
    await turns()
  }
}

describe("a recurring timer", () => {
  it.each(
    [
      ["skip", ["0.5, missed 4"]],
      ["once", ["-0.5, missed 3", "0.5, missed 0"]],
      ["all", [-3.5, -2.5, -1.5, -0.5, 0.5].map((hour) => `${hour}, missed 0`)]
    ] as const
  )("after hours without a node: %s", async (missed, ticks) => {
    const clock = clockOf(missed)
    const storage = makeMemoryStorage()
    const first = await start({ behaviors: [clock.behavior] }, { storage, virtualTime: true })
    // The clock of a system begins at 0, so the pause was before.
    await run(askActor(first.system, clock("a"), { _tag: "Start", firstMs: -3.5 * hourMs }))
    await first.drop()
    const second = await start({ behaviors: [clock.behavior] }, { storage, virtualTime: true })
    await pass(second, 1_000, 20)
    await pass(second, hourMs / 2, 10)
    expect(await run(askActor(second.system, clock("a"), { _tag: "Look" }))).toEqual(ticks)
  })

  it("ends when a decision clears it", async () => {
    const clock = clockOf("all")
    const rig = await start({ behaviors: [clock.behavior] }, { virtualTime: true })
    await run(askActor(rig.system, clock("a"), { _tag: "Start", firstMs: hourMs }))
    await run(askActor(rig.system, clock("a"), { _tag: "Stop" }))
    expect(rig.system.snapshot().timers).toBe(0)
    await pass(rig, 3 * hourMs, 10)
    expect(await run(askActor(rig.system, clock("a"), { _tag: "Look" }))).toEqual([])
  })
})

describe("the timer of a definition", () => {
  const alarm = defineActor("alarm", {
    state: { Off: { rung: Schema.Int }, On: { rung: Schema.Int } },
    messages: { Set: { atMs: Schema.Int }, Touch: {}, Due: {} },
    timer: "Due",
    initial: { _tag: "Off", rung: 0 },
    table: {
      Off: {
        Set: ({ rung }, { atMs }) => become({ _tag: "On", rung }).setTimer(atMs),
        Touch: ({ rung }) => stay().reply(rung),
        Due: ({ rung }) => become({ _tag: "Off", rung: rung + 100 })
      },
      On: {
        Set: (_, { atMs }) => stay().setTimer(atMs),
        // The timer stays, although this decision does not name it.
        Touch: ({ rung }) => become({ _tag: "On", rung }).reply(rung),
        Due: ({ rung }) => become({ _tag: "Off", rung: rung + 1 })
      }
    }
  })

  it("fires once, not before its time, and stays with the actor until then", async () => {
    const rig = await start({ behaviors: [alarm.behavior] }, { virtualTime: true })
    const touch = () => run(askActor(rig.system, alarm("a"), { _tag: "Touch" }))
    await run(askActor(rig.system, alarm("a"), { _tag: "Set", atMs: 1_000 }))
    await touch()
    // As from a commit that was lost: too early, and after the end.
    const spurious = () => run(rig.system.ask(alarm("a"), { _tag: "Due" }))
    await spurious()
    expect(await touch()).toBe(0)
    await pass(rig, 1_020, 4)
    expect(await touch()).toBe(1)
    await spurious()
    expect(await touch()).toBe(1)
    expect(rig.system.snapshot().timers).toBe(0)
  })

  it("is not of another actor that has the same constant as its state", async () => {
    const rig = await start({ behaviors: [alarm.behavior] }, { virtualTime: true })
    await run(askActor(rig.system, alarm("a"), { _tag: "Set", atMs: 1_000 }))
    await run(askActor(rig.system, alarm("b"), { _tag: "Set", atMs: 9_000 }))
    await pass(rig, 1_020, 4)
    expect(await run(askActor(rig.system, alarm("a"), { _tag: "Touch" }))).toBe(1)
    expect(await run(askActor(rig.system, alarm("b"), { _tag: "Touch" }))).toBe(0)
  })
})

describe("an attempt", () => {
  const sender = (send: (signal: AbortSignal) => Promise<void>) =>
    defineActor("sender", {
      state: { Idle: { sent: Schema.Int }, Sending: {} },
      messages: { Send: {}, Due: {}, Sent: {}, Look: {} },
      actions: { Send: {} },
      timer: "Due",
      initial: { _tag: "Idle", sent: 0 },
      table: {
        Idle: {
          Send: () => become({ _tag: "Sending" }).attempt({ _tag: "Send" }, 30_000),
          Due: () => stay(),
          Sent: () => stay(),
          Look: ({ sent }) => stay().reply(sent)
        },
        Sending: {
          Send: () => stay(),
          Due: () => stay().attempt({ _tag: "Send" }, 30_000),
          Sent: () => become({ _tag: "Idle", sent: 1 }).setTimer(null),
          Look: () => stay().reply(-1)
        }
      },
      perform: {
        Send: async (_, { signal }) => {
          await send(signal)
          return { _tag: "Sent" }
        }
      }
    })

  it("is repeated after a failure, which is logged and restarts nothing", async () => {
    let attempts = 0
    const failing = sender(async () => {
      if (++attempts === 1) throw new Error("no connection")
    })
    const rig = await start({ behaviors: [failing.behavior] }, { virtualTime: true })
    await run(askActor(rig.system, failing("a"), { _tag: "Send" }))
    await pass(rig, 29_000, 10)
    expect(attempts).toBe(1)
    expect(await run(askActor(rig.system, failing("a"), { _tag: "Look" }))).toBe(-1)
    await pass(rig, 2_000, 10)
    expect(attempts).toBe(2)
    expect(await run(askActor(rig.system, failing("a"), { _tag: "Look" }))).toBe(1)
    expect(rig.logs.join("\n")).toContain("the effect Send of sender/a failed")
    expect(rig.logs.join("\n")).not.toContain("actor restarts")
  })

  it("is repeated at once on the next node, and aborted on the last", async () => {
    const signals: Array<AbortSignal> = []
    const hanging = sender((signal) => {
      signals.push(signal)
      return signals.length === 1 ? new Promise(() => {}) : Promise.resolve()
    })
    const storage = makeMemoryStorage()
    const first = await start({ behaviors: [hanging.behavior] }, { storage, virtualTime: true })
    await run(askActor(first.system, hanging("a"), { _tag: "Send" }))
    await turns()
    await first.drop()
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    const second = await start({ behaviors: [hanging.behavior] }, { storage, virtualTime: true })
    await pass(second, 50, 5)
    expect(signals).toHaveLength(2)
    expect(await run(askActor(second.system, hanging("a"), { _tag: "Look" }))).toBe(1)
  })
})
