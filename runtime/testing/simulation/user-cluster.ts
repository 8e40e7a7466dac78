/** A simulated cluster whose nodes run the actors of a user. */
import type { AnyBehavior } from "../../actor/index.ts"
import { type ClusterNoise, type NetworkLine, type NodeEnvironment, type NodeNetwork, NodeProcess,
  SimulatedCluster, SimulatedNetwork } from "../cluster/index.ts"
import type { Computer } from "../time/index.ts"
import type { SimulatedHost, SimulateOptions } from "./options.ts"
import { OutsideCalls } from "./outside.ts"
import type { SimulationPlan } from "./plan.ts"

/** A node with the user's actors. */
export class UserNode extends NodeProcess {
  private readonly lineOfNode: NetworkLine
  private readonly simulated: SimulatedNetwork
  private readonly makeBehaviors: () => ReadonlyArray<AnyBehavior>

  constructor(
    environment: NodeEnvironment,
    computer: Computer,
    simulated: SimulatedNetwork,
    makeBehaviors: () => ReadonlyArray<AnyBehavior>
  ) {
    super(environment, computer)
    this.simulated = simulated
    this.lineOfNode = simulated.connect(computer)
    this.makeBehaviors = makeBehaviors
  }

  /** A client of a process that ends in good order goes to another one. */
  override get isServing(): boolean {
    return super.isServing && !this.isClosed
  }

  protected override behaviors(): ReadonlyArray<AnyBehavior> {
    return this.makeBehaviors()
  }

  protected override network(): NodeNetwork {
    return this.lineOfNode.layers
  }

  protected override disconnect(): void {
    this.simulated.lose(this.lineOfNode)
  }
}

/** A cluster of the user's actors. */
export class UserCluster extends SimulatedCluster<UserNode> {
  private readonly simulated: SimulatedNetwork
  private readonly outside: OutsideCalls
  private readonly makeBehaviors: (host: SimulatedHost) => ReadonlyArray<AnyBehavior>

  constructor(
    { noise, seed }: SimulationPlan,
    keepsTrace: boolean,
    plant: SimulateOptions["plant"] = {},
    record: (behavior: AnyBehavior) => AnyBehavior,
    makeBehaviors: (host: SimulatedHost) => ReadonlyArray<AnyBehavior>
  ) {
    const behaviors = (all: ReadonlyArray<AnyBehavior>) =>
      (plant.behaviors?.(all) ?? all).map(record)
    super({ seed, noise, keepsTrace, seams: { ...plant, behaviors }, apply: plant.apply })
    this.simulated = new SimulatedNetwork(this.time, this.trace, noise)
    this.outside = new OutsideCalls(this.time, this.trace, noise)
    this.makeBehaviors = makeBehaviors
    // Shards that nobody asks stay with an idle node: owning them takes most of the time.
    this.simulated.onAsk = (shard) => this.registry.release(shard)
  }

  protected override newNode(computer: Computer): UserNode {
    const host: SimulatedHost = {
      name: computer.name,
      random: this.time.random,
      outside: this.outside.from(computer)
    }
    const make = () => this.makeBehaviors(host)
    return new UserNode(this.environment, computer, this.simulated, make)
  }

  protected override cutPath(from: UserNode, to: UserNode, untilMs: number): void {
    this.simulated.cuts.set(`${from.computer.name} ${to.computer.name}`, untilMs)
  }

  protected override mendPaths(): void {
    this.simulated.cuts.clear()
  }

  protected override setNoise(noise: ClusterNoise): void {
    super.setNoise(noise)
    this.simulated.noise = noise
    this.outside.noise = { ...noise, outside: 0 }
  }
}
