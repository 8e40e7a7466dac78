/** A cluster of service nodes, its clients and its environment, in simulated time. */
import { Effect } from "effect"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import type { Address } from "../../runtime/index.ts"
import type { NatsApi } from "../../runtime/nats/connection/connection.ts"
import { type ApplyCommit, type ClusterNoise, type Computer, SharedBlobs, SharedCalls,
  SharedRecords, SimulatedCluster } from "../../runtime/testing/index.ts"
import { Bus } from "./bus.ts"
import { ExternalServices } from "./external-services.ts"
import { JetStreamStore } from "./jetstream/store.ts"
import { type Seams, type Shared, SimulatedNode } from "./nodes.ts"
import type { Plan, StoreKind } from "./plan.ts"

export interface WorldSeams extends Seams {
  readonly apply?: ApplyCommit
  /** The store that a planted bug is in; `contract` by default. */
  readonly store?: StoreKind
  /** A node's connection to the servers of the store; only with `jetstream`. */
  readonly nats?: (api: NatsApi) => NatsApi
}

export class World extends SimulatedCluster<SimulatedNode> {
  readonly blobs: SharedBlobs
  readonly tables: SharedRecords
  readonly bus: Bus
  readonly externalServices: ExternalServices
  private readonly shared: Shared

  constructor(plan: Plan, keepsTrace: boolean, seams: WorldSeams = {}) {
    const { noise, seed, store } = plan
    const nats = seams.nats ?? ((api: NatsApi) => api)
    super({
      seed,
      noise,
      keepsTrace,
      seams,
      apply: seams.apply,
      storeOf: store === "jetstream"
        ? ({ events, noise, time, trace }) => new JetStreamStore(time, trace, noise, events, nats)
        : undefined
    })
    const { time, trace } = this
    this.blobs = new SharedBlobs(new SharedCalls("blobs", time, trace, noise))
    this.tables = new SharedRecords(new SharedCalls("records", time, trace, noise))
    this.bus = new Bus(time, trace, noise)
    this.externalServices = new ExternalServices(time, trace, noise)
    this.shared = {
      ...this.environment,
      blobs: this.blobs,
      tables: this.tables,
      bus: this.bus,
      outbound: (computer) => this.externalServices.outbound(computer),
      seams
    }
  }

  protected override newNode(computer: Computer): SimulatedNode {
    return new SimulatedNode(this.shared, computer)
  }

  protected override cutPath(from: SimulatedNode, to: SimulatedNode, untilMs: number): void {
    this.bus.cuts.set(`${from.computer.name} ${to.computer.name}`, untilMs)
  }

  protected override mendPaths(): void {
    this.bus.cuts.clear()
  }

  protected override setNoise(noise: ClusterNoise): void {
    super.setNoise(noise)
    for (const one of [this.blobs.calls, this.tables.calls, this.bus]) one.noise = noise
    this.externalServices.noise = { ...noise, recipients: 0, deferrals: 0 }
  }
}

/** The state of an actor's record, as its behavior wrote it; undefined without a record. */
export const stateOf = <State>({ store }: World, of: Address): State | undefined => {
  const { state } = Effect.runSync(store.inner.load(of))
  return state === undefined ? undefined : JSON.parse(decodeStoredState(state).text) as State
}
