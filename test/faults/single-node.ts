/** One node with its embedded store, and its possible faults. */
import { expect } from "vitest"
import { launch, pause, type Service, start, temporaryFolder } from "../e2e/process.ts"
import type { ReplicaHealth } from "../runtime/nats/servers.ts"
import { checkRun } from "./checker.ts"
import { WallClock } from "./clock.ts"
import { type ChooseFault, type Fault, type FaultTarget, injectFault } from "./fault.ts"
import type { Random } from "./random.ts"
import { recoveredWithinMs } from "./recovery-times.ts"
import type { RunStatistics } from "./run-statistics.ts"
import { Workload, workloadEnv } from "./workload.ts"

/** The node runs for this time before a fault ends it, so that it dies at varying moments. */
const beforeFaultMs = { least: 10, most: 500 }

const pauseMs = { least: 500, most: 4_000 }

const startupMsMax = 400

const consecutiveRestarts = 20

/** The test stops waiting for a failpoint after this time. */
const failpointWithinMs = 8_000

const between = (random: Random, { least, most }: typeof beforeFaultMs): number =>
  least + random.below(most - least)

export type Engine = "rocksdb" | "leveldb"

/** Steps of a message at which a failpoint can kill the service, and the kinds of actors. */
const steps = ["decided", "committed", "replied"] as const

const failpointKinds = [
  "mailbox",
  "mailbox",
  "session",
  "content",
  "idempotency",
  "notification",
  "registration"
] as const

const stepsMax = {
  mailbox: 60,
  session: 12,
  content: 4,
  idempotency: 12,
  notification: 8,
  registration: 2
}

export class SingleNode implements FaultTarget {
  readonly clock = new WallClock()
  private service: Service
  private readonly dataDir: string
  private readonly env: Readonly<Record<string, string>>

  private constructor(store: Engine) {
    this.dataDir = temporaryFolder()
    this.env = { STORAGE_ENGINE: store, ...workloadEnv, ...this.clock.env }
    this.service = launch({ dataDir: this.dataDir, env: this.env })
  }

  static async start(store: Engine): Promise<SingleNode> {
    const node = new SingleNode(store)
    await node.service.ready()
    return node
  }

  readonly urls = (): ReadonlyArray<string> =>
    this.service.isOver || this.service.listening === undefined ? [] : [this.service.url]

  readonly health = async (): Promise<ReplicaHealth> => ({
    unavailable: this.service.isOver ? ["the service"] : [],
    behind: new Map()
  })

  get logs(): string {
    return this.service.output.slice(-3_000)
  }

  /** Waits until every pending timer is due. */
  async passAllTimers(): Promise<void> {
    await this.setClock(this.clock.offsetMaxMs + 2 * 3_600_000)
  }

  async setClock(offsetMs: number): Promise<void> {
    this.clock.set(offsetMs)
    await this.clock.waitUntilApplied(this.service.url)
  }

  kill(): Promise<void> {
    return this.service.kill()
  }

  async stop(): Promise<number | null> {
    return (await this.service.stop()).code
  }

  /** The faults by name. */
  get faults(): Readonly<Record<string, ChooseFault>> {
    return {
      killed: (random) => this.killed(random),
      killedAtFailpoint: (random) => this.killedAtFailpoint(random),
      killedDuringStart: (random) => this.killedDuringStart(random),
      stopped: (random) => this.stopped(random),
      paused: (random) => this.paused(random),
      clockForward: () => this.clockBy(3_600_000),
      clockBack: () => this.clockBy(-3_600_000),
      killedRepeatedly: () => this.killedRepeatedly()
    }
  }

  private readonly restart = async (added: Readonly<Record<string, string>> = {}) => {
    this.service = await start({ dataDir: this.dataDir, env: { ...this.env, ...added } })
  }

  private killed(random: Random): Fault {
    const busy = between(random, beforeFaultMs)
    return {
      name: "the node was killed",
      inject: async () => {
        await pause(busy)
        await this.service.kill()
      },
      undo: this.restart,
      servedWithinMs: undefined,
      durationMs: 0
    }
  }

  /** The node kills itself at the n-th step of a kind. */
  private killedAtFailpoint(random: Random): Fault {
    const step = random.of(steps) ?? "decided"
    const kind = random.of(failpointKinds) ?? "mailbox"
    const n = 1 + random.below(stepsMax[kind])
    return {
      name: `the node was killed when a message was ${step}`,
      inject: async () => {
        await this.service.kill()
        await this.restart({ RESTANTE_FAILPOINT: `${step}:${kind}:${n}` }).catch(() => undefined)
        await Promise.race([this.service.ended, pause(failpointWithinMs)])
        await this.service.kill()
      },
      undo: () => this.restart(),
      servedWithinMs: undefined,
      durationMs: 0
    }
  }

  private killedDuringStart(random: Random): Fault {
    const waits = [random.below(startupMsMax), random.below(startupMsMax)]
    return {
      name: "the node was killed while it started",
      inject: async () => {
        await this.service.kill()
        for (const ms of waits) {
          this.service = launch({ dataDir: this.dataDir, env: this.env })
          await pause(ms)
          await this.service.kill()
        }
      },
      undo: () => this.restart(),
      servedWithinMs: undefined,
      durationMs: 0
    }
  }

  private stopped(random: Random): Fault {
    const busy = between(random, beforeFaultMs)
    return {
      name: "the node was stopped with SIGTERM",
      inject: async () => {
        await pause(busy)
        const { code } = await this.service.stop()
        if (code !== 0) throw new Error(`it ended with ${code}: ${this.logs}`)
      },
      undo: () => this.restart(),
      servedWithinMs: undefined,
      durationMs: 0
    }
  }

  private paused(random: Random): Fault {
    return {
      name: "the node was paused",
      inject: async () => this.service.child.kill("SIGSTOP"),
      undo: async () => this.service.child.kill("SIGCONT"),
      servedWithinMs: undefined,
      durationMs: between(random, pauseMs)
    }
  }

  private clockBy(byMs: number): Fault {
    return {
      name: `the clock was set ${byMs > 0 ? "forward" : "back"} by an hour`,
      inject: () => this.setClock(this.clock.offsetMs + byMs),
      undo: async () => undefined,
      servedWithinMs: recoveredWithinMs,
      durationMs: 500
    }
  }

  private killedRepeatedly(): Fault {
    return {
      name: `the node was killed ${consecutiveRestarts} times in a row`,
      inject: async () => {
        for (let n = 0; n < consecutiveRestarts; n += 1) {
          await this.service.kill()
          await this.restart()
        }
      },
      undo: async () => undefined,
      servedWithinMs: recoveredWithinMs,
      durationMs: 0
    }
  }
}

/** One run: a new node, a load, these faults one after the other, and the final verification. */
export const runSingleNode = async (
  { node, choices, seed, statistics }: {
    readonly node: SingleNode
    readonly seed: string
    readonly statistics: RunStatistics
    readonly choices: ReadonlyArray<ChooseFault>
  }
): Promise<void> => {
  const load = await Workload.start(node.urls, seed)
  try {
    for (const choose of choices) await injectFault({ target: node, load, statistics }, choose)
    await load.end()
    await node.passAllTimers()
    await checkRun(load, node.urls())
    statistics.countRun(load.recorder)
    expect(await node.stop()).toBe(0)
  } catch (cause) {
    statistics.writeContradiction(cause)
    throw new Error(`seed ${seed}: ${String(cause)}\n${node.logs}`, { cause })
  } finally {
    await load.end()
    await node.kill()
  }
}
