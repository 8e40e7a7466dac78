/** One node with its embedded store, and its possible faults. */
import { expect } from "vitest"
import { launch, pause, type Service, start, temporaryFolder } from "../e2e/process.ts"
import { healedWithinMs } from "./bounds.ts"
import { WallClock } from "./clock.ts"
import { type Choose, type Fault, type FaultTarget, injectFault } from "./fault.ts"
import type { Random } from "./random.ts"
import type { Tally } from "./tally.ts"
import { expectSound } from "./verdict.ts"
import { Workload, workloadEnv } from "./workload.ts"

/** The node runs for this time before a fault ends it, so that it dies at varying moments. */
const busyMs = { least: 10, most: 500 }
const stillMs = { least: 500, most: 4_000 }
const startedMsMax = 400
const restartsInARow = 20
/** The test stops waiting for a failpoint after this time. */
const diesWithinMs = 8_000

const between = (random: Random, { least, most }: typeof busyMs): number =>
  least + random.below(most - least)

export type Store = "rocksdb" | "leveldb"

/** Steps of a message at which a failpoint can kill the service, and the kinds of actors. */
const steps = ["decided", "committed", "replied"] as const
const kinds = [
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

export class Alone implements FaultTarget {
  readonly clock = new WallClock()
  private service: Service
  private readonly dataDir: string
  private readonly env: Readonly<Record<string, string>>

  private constructor(store: Store) {
    this.dataDir = temporaryFolder()
    this.env = { STORAGE_ENGINE: store, ...workloadEnv, ...this.clock.env }
    this.service = launch({ dataDir: this.dataDir, env: this.env })
  }

  static async start(store: Store): Promise<Alone> {
    const alone = new Alone(store)
    await alone.service.ready()
    return alone
  }

  readonly urls = (): ReadonlyArray<string> =>
    this.service.isOver || this.service.listening === undefined ? [] : [this.service.url]

  readonly isHealthy = async (): Promise<boolean> => !this.service.isOver

  get logs(): string {
    return this.service.output.slice(-3_000)
  }

  /** Waits until every pending timer is due. */
  async later(): Promise<void> {
    await this.set(this.clock.mostMs + 2 * 3_600_000)
  }

  async set(offMs: number): Promise<void> {
    this.clock.set(offMs)
    await this.clock.noticed(this.service.url)
  }

  kill(): Promise<void> {
    return this.service.kill()
  }

  async stop(): Promise<number | null> {
    return (await this.service.stop()).code
  }

  /** The faults by name. */
  get faults(): Readonly<Record<string, Choose>> {
    return {
      killed: (random) => this.killed(random),
      diesOnTheWay: (random) => this.diesOnTheWay(random),
      killedAtItsStart: (random) => this.killedAtItsStart(random),
      stopped: (random) => this.stopped(random),
      still: (random) => this.still(random),
      clockForward: () => this.clockBy(3_600_000),
      clockBack: () => this.clockBy(-3_600_000),
      restarts: () => this.restarts()
    }
  }

  private readonly restart = async (added: Readonly<Record<string, string>> = {}) => {
    this.service = await start({ dataDir: this.dataDir, env: { ...this.env, ...added } })
  }

  private killed(random: Random): Fault {
    const busy = between(random, busyMs)
    return {
      what: "the node was killed",
      inject: async () => {
        await pause(busy)
        await this.service.kill()
      },
      undo: this.restart,
      servedWithinMs: undefined,
      lastsMs: 0
    }
  }

  /** The node kills itself at the n-th step of a kind. */
  private diesOnTheWay(random: Random): Fault {
    const step = random.of(steps) ?? "decided"
    const kind = random.of(kinds) ?? "mailbox"
    const n = 1 + random.below(stepsMax[kind])
    return {
      what: `the node died at a message ${step}`,
      inject: async () => {
        await this.service.kill()
        await this.restart({ RESTANTE_FAILPOINT: `${step}:${kind}:${n}` }).catch(() => undefined)
        await Promise.race([this.service.ended, pause(diesWithinMs)])
        await this.service.kill()
      },
      undo: () => this.restart(),
      servedWithinMs: undefined,
      lastsMs: 0
    }
  }

  private killedAtItsStart(random: Random): Fault {
    const waits = [random.below(startedMsMax), random.below(startedMsMax)]
    return {
      what: "the node was killed while it started",
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
      lastsMs: 0
    }
  }

  private stopped(random: Random): Fault {
    const busy = between(random, busyMs)
    return {
      what: "the node was stopped in order",
      inject: async () => {
        await pause(busy)
        const { code } = await this.service.stop()
        if (code !== 0) throw new Error(`it ended with ${code}: ${this.logs}`)
      },
      undo: () => this.restart(),
      servedWithinMs: undefined,
      lastsMs: 0
    }
  }

  private still(random: Random): Fault {
    return {
      what: "the node stood still",
      inject: async () => this.service.child.kill("SIGSTOP"),
      undo: async () => this.service.child.kill("SIGCONT"),
      servedWithinMs: undefined,
      lastsMs: between(random, stillMs)
    }
  }

  private clockBy(byMs: number): Fault {
    return {
      what: `the clock was set ${byMs > 0 ? "forward" : "back"} by an hour`,
      inject: () => this.set(this.clock.offMs + byMs),
      undo: async () => undefined,
      servedWithinMs: healedWithinMs,
      lastsMs: 500
    }
  }

  private restarts(): Fault {
    return {
      what: `the node was killed ${restartsInARow} times in a row`,
      inject: async () => {
        for (let n = 0; n < restartsInARow; n += 1) {
          await this.service.kill()
          await this.restart()
        }
      },
      undo: async () => undefined,
      servedWithinMs: healedWithinMs,
      lastsMs: 0
    }
  }
}

/** One run: a new node, a load, these faults one after the other, and the final verification. */
export const runAlone = async (
  { alone, choices, seed, tally }: {
    readonly alone: Alone
    readonly seed: string
    readonly tally: Tally
    readonly choices: ReadonlyArray<Choose>
  }
): Promise<void> => {
  const load = await Workload.start(alone.urls, seed)
  try {
    for (const choose of choices) await injectFault({ target: alone, load, tally }, choose)
    await load.end()
    await alone.later()
    await expectSound(load, alone.urls())
    tally.ends(load.recorder)
    expect(await alone.stop()).toBe(0)
  } catch (cause) {
    tally.keep(cause)
    throw new Error(`seed ${seed}: ${String(cause)}\n${alone.logs}`, { cause })
  } finally {
    await load.end()
    await alone.kill()
  }
}
