/**
 * One node: the real runtime with the real behaviors and the transport over NATS subjects, on a
 * separate computer, on the shared store and registry.
 */
import { Layer } from "effect"
import { behaviors, type Dependencies, linksUnder, UsageLedger } from "../../actors/index.ts"
import type { Outbound } from "../../actors/outbound/protocol.ts"
import type { Service } from "../../http/pipeline/index.ts"
import type { AnyBehavior, BlobsApi, RecordsApi, SystemApi } from "../../runtime/index.ts"
import { Nats, type NatsApi } from "../../runtime/nats/connection/connection.ts"
import { TurnWrites } from "../../runtime/nats/connection/turn-writes.ts"
import { natsPings } from "../../runtime/nats/transport/pings.ts"
import { natsTransport } from "../../runtime/nats/transport/transport.ts"
import { type Computer, type NodeEnvironment, type NodeNetwork, NodeProcess, type NodeSeams,
  type SharedBlobs, type SharedRecords } from "../../runtime/testing/index.ts"
import { makeTestKeyring, noDependencies } from "../actors/dependencies.ts"
import { testAuthenticator } from "../runtime/nats/keys.ts"
import type { Bus, Wire } from "./bus.ts"
import { serviceOf, Web, type WebAnswer, type WebRequest } from "./web.ts"

export const baseUrl = "https://post.test"
export const links = linksUnder(baseUrl)
/** Short, so that a run reaches the end of it. */
export const schedule = [0, 1_000, 5_000, 20_000, 40_000]
export const retentionMs = 60 * 60_000
/** Nothing here exceeds a quota. */
const quotas = {
  anonymousBytesMax: 1024 ** 4,
  networkBytesMax: 1024 ** 4,
  accountBytesMax: 1024 ** 4
}

/** Replacements of real parts, by which tests plant bugs. */
export interface Seams extends NodeSeams {
  readonly service?: (service: Service) => Service
}

/** The shared environment of a run's nodes. */
export interface Shared extends NodeEnvironment {
  readonly blobs: SharedBlobs
  readonly tables: SharedRecords
  readonly bus: Bus
  readonly outbound: (computer: Computer) => Outbound
  readonly seams: Seams
}

export class SimulatedNode extends NodeProcess {
  /** Its HTTP service; undefined while it starts. */
  web: Web | undefined = undefined
  private readonly blobs: BlobsApi
  private readonly records: RecordsApi
  private readonly usage: UsageLedger
  private readonly wire: Wire
  private readonly shared: Shared

  constructor(shared: Shared, computer: Computer) {
    super(shared, computer)
    this.shared = shared
    this.blobs = shared.blobs.connect(computer, () => this.line.cutUntilMs)
    this.records = shared.tables.connect(computer, () => this.line.cutUntilMs)
    this.usage = new UsageLedger(this.records, quotas)
    this.wire = shared.bus.connect(computer)
  }

  protected override disconnect(): void {
    this.wire.closed = true
    this.shared.bus.lose(this.wire)
  }

  protected override onStarted(system: SystemApi): void {
    this.web = this.webOf(system)
  }

  /** Handles an HTTP request of a client. */
  request(request: WebRequest, done: (answer: WebAnswer) => void): void {
    this.asks++
    this.web?.answer(request, (answer) => {
      this.asks--
      done(answer)
    })
  }

  private webOf(system: SystemApi): Web {
    const { blobs, computer, shared: { onDefect, seams } } = this
    const service = serviceOf({
      baseUrl,
      // Two parts, joined by a dot, as the service composes it.
      startId: computer.name.replace("#", "."),
      system,
      blobs,
      records: this.records,
      usage: this.usage
    })
    const what = (text: string) => onDefect(`${computer.name}: ${text}`)
    return new Web(seams.service?.(service) ?? service, what)
  }

  protected override behaviors(): ReadonlyArray<AnyBehavior> {
    const { computer, shared: { outbound, time } } = this
    const dependencies: Dependencies = {
      ...noDependencies,
      keyring: makeTestKeyring(),
      blobs: this.blobs,
      usage: this.usage,
      outbound: outbound(computer),
      links,
      schedule,
      retentionMs,
      random: time.random
    }
    return behaviors(dependencies)
  }

  protected override network(): NodeNetwork {
    // The transport uses nothing else of the connection.
    const { nc } = this.wire
    const nats = Layer.succeed(Nats, {
      nc,
      writes: new TurnWrites(nc),
      isConnected: () => true
    } as NatsApi)
    return {
      transport: Layer.provide(natsTransport(testAuthenticator), nats),
      pings: Layer.provide(natsPings(testAuthenticator), nats)
    }
  }
}
