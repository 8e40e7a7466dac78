/** The requests of background tasks for anonymous deposits, by a clock of the test's. */
import { Clock, Effect, Layer, Logger, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { expect, it, onTestFinished } from "vitest"
import { backgroundTask } from "../../actors/background-task/actor.ts"
import { admitFetch, admitReceipt, boundsOf,
  makeRequestHistory } from "../../actors/background-task/admission.ts"
import { DroppedRequests } from "../../actors/background-task/dropped-requests.ts"
import type { BackgroundTaskAction, BackgroundTaskMessage, BackgroundTaskReply,
  BackgroundTaskState } from "../../actors/background-task/protocol.ts"
import { anonymousPerDayMax, anonymousPerMinuteMax, anonymousRequestsMs, droppedRequestsLogMs,
  redirectsMax } from "../../actors/limits.ts"
import { encodeItem, type StoredNotification } from "../../actors/mailbox/log-item.ts"
import type { Outbound } from "../../actors/outbound/protocol.ts"
import { type Address, address, type Peers } from "../../runtime/index.ts"
import { hash, nowMs as beganAtMs } from "./cells.ts"
import { noDependencies, noPeers } from "./dependencies.ts"
import { defaultSettings } from "./mailbox-settings.ts"
import { Model } from "./model.ts"
import { client, patient, receiver } from "./outbound/rig.ts"

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

const network = "198.51.100.0/24"

const anonymous: StoredNotification = {
  atMs: beganAtMs,
  idRandom: "random",
  digest: "digest",
  fragment: "<item/>",
  network,
  account: undefined
}

type TaskModel = Model<
  BackgroundTaskState,
  BackgroundTaskMessage,
  BackgroundTaskReply,
  BackgroundTaskAction
>

interface Task {
  readonly self: Address
  readonly model: TaskModel
}

/** Mailboxes with a notification each, of one anonymous network, and their tasks at one node. */
class RequestWorld {
  readonly tasks: ReadonlyArray<Task>
  nowMs = beganAtMs
  private readonly behavior
  private readonly runtime = ManagedRuntime.make(TestClock.layer())
  private readonly peers: Peers

  /** The mailboxes `m0`, `m1` and so on fetch the content at these URIs and send receipts. */
  constructor(outbound: Outbound, uris: ReadonlyArray<string>) {
    const schedule = [0, ...Array.from({ length: 1_000 }, () => 30_000)]
    this.behavior = backgroundTask({ ...noDependencies, outbound, schedule })
    const settings = { ...defaultSettings, fetch: "eager", receipts: "received" }
    this.peers = {
      ...noPeers,
      ask: () => Effect.succeed({ _tag: "Described", view: { owner: "alice", settings } }),
      read: ({ id }) => {
        const fragment = `<item><description>d</description><url>${
          uris[Number(id.slice(1))]
        }</url></item>`
        const parts = [hash("random").slice(0, 22), hash("digest").slice(0, 22)] as const
        return Effect.succeed([{
          n: 1,
          value: encodeItem(beganAtMs, ...parts, fragment, { network })
        }])
      }
    }
    this.tasks = uris.flatMap((_, at) =>
      ["fetch", "received"].map((kind) => {
        const self = address("background-task", `m${at}=1-${kind}`)
        const model = new Model(this.behavior, self)
        model.signalAt(this.nowMs)
        return { self, model }
      })
    )
    onTestFinished(() => this.runtime.dispose())
  }

  /** Performs what is due now, all of it at once, until nothing more is due. */
  async perform(): Promise<void> {
    await this.runtime.runPromise(TestClock.setTime(this.nowMs))
    const act = async ({ model, self }: Task) => {
      for (;;) {
        model.fireTimer(this.nowMs)
        const action = model.actions.shift()
        if (action === undefined) return
        const performing = this.behavior.perform(action, self, this.peers)
        const result = await this.runtime.runPromise(performing)
        if (result !== undefined) model.send(result, this.nowMs)
      }
    }
    await Promise.all(this.tasks.map(act))
  }

  /** Whether a task has not ended. */
  get isBusy(): boolean {
    return this.tasks.some(({ model }) => model.timerAtMs !== null)
  }
}

/** Records when each request is made; none of them is answered. */
const countingOutbound = () => {
  const madeAtMs: Array<number> = []
  const made = Effect.map(Clock.currentTimeMillis, (nowMs) => {
    madeAtMs.push(nowMs)
    return { _tag: "RetryableFailure", problem: "no answer in time" } as const
  })
  return { madeAtMs, outbound: { get: () => made, head: () => made, post: () => made } }
}

/** The most of these times within any span of this length. */
const mostWithin = (times: ReadonlyArray<number>, spanMs: number): number =>
  Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + spanMs).length))

it("causes at most 10 requests a minute and 100 a day to one origin, for an hour", async () => {
  const { madeAtMs, outbound } = countingOutbound()
  const uris = Array.from({ length: 50 }, (_, at) => `https://victim.example/${at}`)
  const world = new RequestWorld(outbound, uris)
  for (; world.nowMs <= beganAtMs + 2 * hourMs; world.nowMs += 1_000) await world.perform()
  // Without redirects, their share of the minute and of the day is left.
  expect(mostWithin(madeAtMs, minuteMs)).toBe(anonymousPerMinuteMax - redirectsMax)
  expect(mostWithin(madeAtMs, dayMs)).toBe(anonymousPerDayMax - redirectsMax)
  expect(madeAtMs.filter((at) => at >= beganAtMs + hourMs)).toEqual([])
  expect(world.isBusy).toBe(false)
})

it("counts what is dropped for want of a budget, and logs it once in a while", async () => {
  const logged: Array<unknown> = []
  const logger = Logger.make(({ message }) => void logged.push(message))
  const logging = Logger.layer([logger])
  const runtime = ManagedRuntime.make(Layer.mergeAll(TestClock.layer(), logging))
  onTestFinished(() => runtime.dispose())
  const dropped = new DroppedRequests()
  const history = makeRequestHistory(dropped)
  const admit = async (atMs: number) => {
    await runtime.runPromise(TestClock.setTime(atMs))
    const stored = { ...anonymous, atMs }
    const pointer = { url: "https://victim.example/1", password: undefined }
    return runtime.runPromise(admitFetch(noDependencies, history, stored, pointer))
  }
  const perDay = anonymousPerDayMax - redirectsMax
  for (let n = 0; n < perDay; n++) expect(await admit(beganAtMs + n * minuteMs)).toBe("admitted")
  expect([dropped.total, logged]).toEqual([0, []])
  const fullMs = beganAtMs + perDay * minuteMs
  for (let n = 0; n < 10; n++) expect(await admit(fullMs + n)).toBe("never")
  expect(dropped.total).toBe(10)
  expect(logged).toHaveLength(1)
  expect(await admit(fullMs + droppedRequestsLogMs)).toBe("never")
  expect(logged).toHaveLength(2)
  expect(String(logged[1])).toContain("11 since the start")
})

it("ends the retries an hour after the deposit, however few requests were made", async () => {
  const { madeAtMs, outbound } = countingOutbound()
  const world = new RequestWorld(outbound, ["https://slow.example/1"])
  for (let at = 0; at <= 20; at++) {
    await world.perform()
    world.nowMs += 6 * minuteMs
  }
  expect(madeAtMs.at(-1)).toBe(beganAtMs + hourMs - 6 * minuteMs)
  expect(world.isBusy).toBe(false)
})

it("counts a redirect for the origin to which it leads", async () => {
  const victim = await receiver((_, response) => void response.writeHead(503).end())
  const at = await receiver((_, response) => {
    response.writeHead(307, { location: `http://victim.localhost:${victim.port}/` }).end()
  })
  const names = Array.from({ length: 50 }, (_, n) => `origin-${n}.localhost`)
  const { outbound } = await client({ limits: { ...patient, waitMs: 20_000 } })
  // Strangers reach no address of this machine: only the redirects' admission is as it is for them.
  const reaching: Outbound = {
    get: (get) => outbound.get({ ...get, reach: "allowed" }),
    head: (head) => outbound.head({ ...head, reach: "allowed" }),
    post: (post) => outbound.post({ ...post, reach: "allowed" })
  }
  const world = new RequestWorld(reaching, names.map((name) => `http://${name}:${at.port}/`))
  await world.perform()
  expect(at.came.length).toBeGreaterThanOrEqual(names.length)
  expect(victim.came).toHaveLength(anonymousPerMinuteMax)
  world.nowMs += minuteMs - 1
  await world.perform()
  expect(victim.came).toHaveLength(anonymousPerMinuteMax)
  world.nowMs += 1
  await world.perform()
  expect(victim.came).toHaveLength(2 * anonymousPerMinuteMax)
})

it("fetches in the end what redirects within its origin, however much at once", async () => {
  const origin = await receiver(({ url = "" }, response) => {
    if (url.endsWith("/")) response.writeHead(404).end()
    else response.writeHead(301, { location: `${url}/` }).end()
  })
  const paths = Array.from({ length: 20 }, (_, n) => `/${n}`)
  const { outbound } = await client({ limits: { ...patient, waitMs: 20_000 } })
  const world = new RequestWorld({
    ...noDependencies.outbound,
    get: (get) => outbound.get({ ...get, reach: "allowed" }),
    head: () => Effect.succeed({ _tag: "Probed", acceptPost: [] })
  }, paths.map((path) => `http://origin.localhost:${origin.port}${path}`))
  for (; world.nowMs < beganAtMs + hourMs; world.nowMs += 30_000) await world.perform()
  const reached = new Set(origin.came.map(({ path }) => path))
  for (const path of paths) expect(reached).toContain(`${path}/`)
})

it("never admits what is an hour old, or would be", async () => {
  const pointer = { url: "https://victim.example/1", password: undefined }
  const bounds = boundsOf(makeRequestHistory(), anonymous, "alice")
  const runtime = ManagedRuntime.make(TestClock.layer())
  onTestFinished(() => runtime.dispose())
  for (const admit of [admitFetch, admitReceipt]) {
    const { madeAtMs, outbound } = countingOutbound()
    const deps = { ...noDependencies, outbound }
    const admitAt = async (nowMs: number, history: ReturnType<typeof makeRequestHistory>) => {
      await runtime.runPromise(TestClock.setTime(nowMs))
      return runtime.runPromise(admit(deps, history, anonymous, pointer, bounds))
    }
    expect(await admitAt(beganAtMs + anonymousRequestsMs, makeRequestHistory())).toBe("never")
    expect(madeAtMs).toEqual([])
    const spent = makeRequestHistory()
    const lateMs = beganAtMs + anonymousRequestsMs - minuteMs
    for (let n = 0; n < anonymousPerMinuteMax; n++) {
      spent.budget.take(network, "https://victim.example", lateMs + 1)
    }
    // In a minute it would be an hour old; until the end of the wait there is no time.
    expect(await admitAt(lateMs + 1, spent)).toBe("never")
    expect(madeAtMs).toEqual([])
    const early = makeRequestHistory()
    for (let n = 0; n < anonymousPerMinuteMax; n++) {
      early.budget.take(network, "https://victim.example", lateMs - 1)
    }
    const untilMs = lateMs - 1 + minuteMs
    expect(await admitAt(lateMs - 1, early)).toEqual({ _tag: "Deferred", untilMs })
  }
})
