/** Actor systems under test, on scripted storage; tests crash and restart them. */
import { Cause, Effect, Layer, Logger, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import type { PlacementApi } from "../../runtime/cluster/placement.ts"
import { type Address, type AskFailure, isRefusal, Placement, singleNodePlacement, Storage,
  type StorageFailure, StorageFull, StorageUnavailable, System, type SystemApi, type SystemOptions,
  Transport } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import type { Commit, CommitOutcome, ReportOutcome,
  StorageApi } from "../../runtime/ports/storage.ts"
import type { TransportApi } from "../../runtime/ports/transport.ts"
import { type Message, probe, type Reply } from "./probe.ts"

type Outcomes = Effect.Effect<ReadonlyArray<CommitOutcome>, StorageFailure>

/** One step of the script: the outcome of the next group. */
export type Act = (
  group: ReadonlyArray<Commit>,
  inner: StorageApi,
  report: ReportOutcome | undefined
) => Outcomes

export const fails: Act = () => Effect.fail(new StorageUnavailable({ detail: "as scripted" }))
export const isFull: Act = () => Effect.fail(new StorageFull({ detail: "as scripted" }))
export const hangs: Act = () => Effect.never
export const dies: Act = () => Effect.die(new Error("as scripted"))
/** Stored, without an answer. */
export const keptAndHangs: Act = (group, inner) => Effect.andThen(inner.commit(group), Effect.never)

export interface Scripted extends StorageApi {
  /** The outcomes of the next groups, in order; when empty, groups are written. */
  readonly acts: Array<Act>
  readonly groups: Array<ReadonlyArray<Commit>>
  readonly loads: {
    count: number
    act: (() => Effect.Effect<never, StorageUnavailable>) | undefined
  }
  /** Groups wait while it is closed. */
  readonly gate: { close: () => void; open: () => void }
  readonly inner: StorageApi
}

export const scripted = (inner: StorageApi = makeMemoryStorage()): Scripted => {
  const acts: Array<Act> = []
  const groups: Array<ReadonlyArray<Commit>> = []
  const loads: Scripted["loads"] = { count: 0, act: undefined }
  let closed = Promise.resolve()
  let open = () => {}
  const gate = {
    close: () => {
      closed = new Promise((resolve) => open = resolve)
    },
    open: () => open()
  }
  return {
    ...inner,
    inner,
    acts,
    groups,
    loads,
    gate,
    commit: (group, report) =>
      Effect.suspend(() => {
        groups.push(group)
        const act = acts.shift()
        const outcome = act === undefined ? inner.commit(group) : act(group, inner, report)
        return Effect.andThen(Effect.promise(() => closed), outcome)
      }),
    load: (of) =>
      Effect.suspend(() => {
        loads.count++
        return loads.act === undefined ? inner.load(of) : loads.act()
      })
  }
}

export interface Ports {
  readonly storage?: StorageApi
  readonly transport?: TransportApi
  readonly placement?: PlacementApi
  /** Only the test advances time. */
  readonly virtualTime?: boolean
}

export interface Rig {
  readonly system: SystemApi
  readonly logs: Array<string>
  /** Advances virtual time. */
  readonly pass: (ms: number) => Promise<void>
  /** Crashes the system. */
  readonly drop: () => Promise<void>
  /** A probe's reply; a refusal as its reason, a failure as its tag. */
  readonly ask: (to: Address, message: Message) => Promise<Reply | string>
}

const running = new Set<() => Promise<void>>()

/** Ends every system that a test left running. */
export const dropAll = async (): Promise<void> => {
  await Promise.all([...running].map((drop) => drop()))
}

export const start = async (
  options: Partial<SystemOptions> = {},
  ports: Ports = {}
): Promise<Rig> => {
  const logs: Array<string> = []
  const logger = Logger.make(({ cause, message }) => {
    logs.push(String(message), Cause.pretty(cause))
  })
  const around = Layer.mergeAll(
    Layer.succeed(Storage, ports.storage ?? makeMemoryStorage()),
    Layer.succeed(Transport, ports.transport ?? makeMemoryTransport()),
    ports.placement === undefined ? singleNodePlacement : Layer.succeed(Placement, ports.placement),
    Logger.layer([logger]),
    ports.virtualTime === true ? TestClock.layer() : Layer.empty
  )
  const layer = System.layer({ behaviors: [probe()], ...options })
  const runtime = ManagedRuntime.make(Layer.provideMerge(layer, around))
  const system = await runtime.runPromise(System)
  const drop = async (): Promise<void> => {
    running.delete(drop)
    await runtime.dispose()
  }
  running.add(drop)
  const ask = (to: Address, message: Message): Promise<Reply | string> =>
    new Promise((resolve) => {
      system.askByCallback(to, message, (failure: AskFailure | undefined, reply) => {
        if (failure !== undefined) resolve(failure._tag)
        else resolve(isRefusal(reply) ? reply.reason : reply as Reply) // a probe replies so
      })
    })
  const pass = (ms: number): Promise<void> => runtime.runPromise(TestClock.adjust(ms))
  return { system, logs, pass, drop, ask }
}

/** Waits some turns of the event loop, so that ready work runs. */
export const turns = async (count = 20): Promise<void> => {
  for (let left = count; left > 0; left--) await new Promise((resolve) => setImmediate(resolve))
}

/** Waits until the condition is true; fails after a minute. */
export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  const endMs = performance.now() + 60_000
  while (!await holds()) {
    if (performance.now() > endMs) throw new Error(`never: ${holds.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
