/**
 * The store of all nodes as simulated NATS servers, with faults. Each node runs the real storage
 * code. Each stream has three replicas and a leader of its own: it loses that, stalls, and shows
 * for a while what a leader of the past believes. Each write has its own fate.
 */
import { Effect, Layer } from "effect"
import { type ClusterNoise, commitFateOf, type Computer, epochMs, type SharedStore,
  type StorageLine, type StoreEvents, streamCount, type Trace,
  type VirtualTime } from "../../../runtime/testing/index.ts"
import { keyOf } from "../../../runtime/actor/address.ts"
import { writeTimeoutMs } from "../../../runtime/limits.ts"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { Storage, type StorageApi } from "../../../runtime/ports/storage.ts"
import { actorsOf, Changes, storedActors } from "./changes.ts"
import { type Route, SimulatedConnection } from "./connection.ts"
import { type ApiCall, errorReply, noResponders, type Reply, replyOf,
  SimulatedJetStream } from "./server.ts"
import { type ApiFailure, incompleteBatch, type Published } from "./stream.ts"

const replicas = 3
/** Smaller than that of real servers, so that a run reaches it. */
const maxPayload = 17 * 1_024
const wayMaxMs = 6
/** Shortest and longest delay of a write that hangs. */
const lateMinMs = 1_000
const lateMaxMs = 40_000
/** Fraction of the writes to a stream without a leader that are refused; the others are lost. */
const refusedFraction = 0.4
/** How long a leader of the past answers, after the stream has the next one. */
const pastLeaderMs = 5_000
const pastLeaderFraction = 0.3
/** How far a replica is behind: usually, and after its stream has lost a leader. */
const behindMaxMs = 40
const farBehindMaxMs = 4_000
/** A client that has waited so long for an acknowledgement may have given up. */
const heardMs = writeTimeoutMs * 0.95

const noLeader: ApiFailure = {
  code: 503,
  err_code: 10_008,
  description: "JetStream system temporarily unavailable"
}
const tooManyBatches: ApiFailure = {
  code: 429,
  err_code: 10_210,
  description: "batch publish: too many in flight"
}
const wrongSequence: ApiFailure = {
  code: 400,
  err_code: 10_071,
  description: "wrong last sequence"
}
const refusals: ReadonlyArray<Reply> = [
  noResponders,
  errorReply(noLeader),
  errorReply(tooManyBatches),
  errorReply(incompleteBatch)
]

/** One stream's servers. */
class StreamServers {
  stalledUntilMs = 0
  leaderlessUntilMs = 0
  /** Grows when a leader is lost. */
  term = 0
  /** Until when the last leader believes that it leads, and what it last heard of. */
  pastUntilMs = 0
  lostAtMs = 0
  /** What each follower has reached. */
  readonly reachedMs = Array.from({ length: replicas - 1 }, () => 0)
}

/** One node's connection. */
interface Client {
  readonly computer: Computer
  readonly connection: SimulatedConnection
  /** When its latest write arrives at each stream. */
  readonly arrivedMs: Map<StreamServers, number>
  /** Commits that its runtime waits for, by actor. */
  readonly waiting: Map<string, number>
  readonly line: StorageLine
}

export class JetStreamStore implements SharedStore {
  readonly inner: StorageApi
  readonly events: StoreEvents
  noise: ClusterNoise
  stalledUntilMs = 0
  settledMs = 0
  private readonly server: SimulatedJetStream
  private readonly streams = Array.from({ length: streamCount }, () => new StreamServers())
  /** Answers for streams that do not exist. */
  private readonly others = new StreamServers()
  private readonly changes = new Changes()
  private readonly time: VirtualTime
  private readonly trace: Trace
  private readonly intercept: (api: NatsApi) => NatsApi

  /** `intercept`: replaces a node's connection; tests plant bugs there. */
  constructor(
    time: VirtualTime,
    trace: Trace,
    noise: ClusterNoise,
    events: StoreEvents,
    intercept: (api: NatsApi) => NatsApi
  ) {
    this.time = time
    this.trace = trace
    this.noise = noise
    this.events = events
    this.intercept = intercept
    this.server = new SimulatedJetStream(() => time.nowMs, epochMs, replicas)
    this.inner = storedActors(this.server, streamCount)
  }

  stall(stream: number, forMs: number): void {
    const servers = this.streams[stream] ?? this.others
    servers.stalledUntilMs = Math.max(servers.stalledUntilMs, this.time.nowMs + forMs)
  }

  loseLeader(stream: number, forMs: number): void {
    const servers = this.streams[stream] ?? this.others
    const { nowMs } = this.time
    if (servers.pastUntilMs < nowMs) servers.lostAtMs = nowMs
    servers.term++
    servers.leaderlessUntilMs = Math.max(servers.leaderlessUntilMs, nowMs + forMs)
    servers.pastUntilMs = servers.leaderlessUntilMs + pastLeaderMs
  }

  heal(): void {
    this.stalledUntilMs = 0
    for (const servers of this.streams) {
      servers.stalledUntilMs = 0
      servers.leaderlessUntilMs = 0
      servers.pastUntilMs = 0
    }
  }

  connect(computer: Computer): StorageLine {
    const route: Route = {
      write: (messages, reply) => this.write(client, messages, reply),
      call: (call, reply) => this.call(client, call, reply)
    }
    const connection = new SimulatedConnection({ maxPayload, replicas }, route)
    const [name = ""] = computer.name.split("#")
    const nats = Layer.sync(Nats, () => this.intercept(connection.api(name)))
    const storage = Layer.effect(Storage, Effect.map(Storage, (real) => watched(client, real)))
      .pipe(
        Layer.provide(natsStorage({ buckets: streamCount })),
        Layer.provide(nats)
      )
    const line: StorageLine = { cutUntilMs: 0, storage }
    const client: Client = {
      computer,
      connection,
      arrivedMs: new Map(),
      waiting: new Map(),
      line
    }
    return line
  }

  private serversOf(stream: string): StreamServers {
    return this.streams[Number(stream.slice("KV_actors-".length))] ?? this.others
  }

  /** The time of one way between a node and a server of the stream. */
  private wayMs({ line }: Client, servers: StreamServers): number {
    const untilMs = Math.max(this.stalledUntilMs, line.cutUntilMs, servers.stalledUntilMs)
    const ownMs = 0.1 + this.time.random() * (wayMaxMs + this.noise.slowMs / 2)
    return Math.max(0, untilMs - this.time.nowMs) + ownMs
  }

  private reply(
    client: Client,
    servers: StreamServers,
    inbox: string,
    replies: ReadonlyArray<Reply>,
    onArrival?: () => void
  ): void {
    if (inbox === "") return
    this.time.on(client.computer, this.wayMs(client, servers), () => {
      onArrival?.()
      for (const one of replies) client.connection.deliver(inbox, one)
    })
  }

  private write(client: Client, messages: ReadonlyArray<Published>, inbox: string): void {
    const { time } = this
    const [, bucket = ""] = messages[0]?.subject.split(".") ?? []
    const servers = this.serversOf(`KV_${bucket}`)
    const fate = commitFateOf(this.noise, time.random)
    const sentMs = time.nowMs
    if (fate !== "kept") {
      this.trace.note("store", () => `${client.computer.name}: a write is ${fate}`)
    }
    const told = (): void => {
      if (time.nowMs - sentMs > heardMs) return
      for (const actor of actorsOf(messages)) {
        if (client.waiting.has(keyOf(actor))) this.events.onAnswered(client.computer, actor)
      }
    }
    const land = (isAnswered: boolean): void => {
      const written = this.store(client, messages)
      if (!isAnswered) return
      const isStored = written !== undefined && !("error" in written)
      this.reply(client, servers, inbox, [replyOf(written)], isStored ? told : undefined)
    }
    if (fate === "never") return
    if (fate === "refused") {
      const refusal = refusals[Math.floor(time.random() * refusals.length)] ?? noResponders
      return this.reply(client, servers, inbox, [refusal])
    }
    if (fate === "late" || fate === "silent") {
      const lateMs = lateMinMs + time.random() * (lateMaxMs - lateMinMs)
      this.settledMs = Math.max(this.settledMs, time.nowMs + lateMs)
      return void time.later(lateMs, () => land(fate === "late"))
    }
    const { term } = servers
    // Writes of a connection arrive in their order, unless they hang.
    const arriveMs = sentMs + this.wayMs(client, servers)
    const atMs = Math.max(client.arrivedMs.get(servers) ?? 0, arriveMs)
    client.arrivedMs.set(servers, atMs)
    time.later(atMs - sentMs, () => {
      if (servers.term !== term) return this.landAcrossTerms(client, servers, messages, inbox)
      if (servers.leaderlessUntilMs > time.nowMs) {
        if (time.random() < refusedFraction) this.reply(client, servers, inbox, [noResponders])
        return
      }
      if (fate !== "doubt" || time.random() < 0.5) land(fate === "kept")
    })
  }

  /** The leader that the write was sent to is lost: the next one has it or not. */
  private landAcrossTerms(
    client: Client,
    servers: StreamServers,
    messages: ReadonlyArray<Published>,
    inbox: string
  ): void {
    if (this.time.random() < 0.5) return
    this.store(client, messages)
    // A server may compare the write with itself, once the next leader has stored it.
    if (this.time.random() < 0.2) this.reply(client, servers, inbox, [errorReply(wrongSequence)])
  }

  private store(client: Client, messages: ReadonlyArray<Published>) {
    const { computer } = client
    const written = this.server.write(messages)
    const isStored = written !== undefined && !("error" in written)
    this.trace.note("store", () => {
      const subjects = messages.map(({ subject }) => subject).join(" ")
      const answer = written && "error" in written ? written.error.err_code : written?.seq
      return `${computer.name}: ${subjects}: ${isStored ? "stored" : "rejected"} ${answer}`
    })
    if (!isStored) return written
    for (const change of this.changes.of(messages)) this.events.onApplied(computer, change)
    return written
  }

  private call(client: Client, call: ApiCall, inbox: string): void {
    const { noise, time } = this
    const servers = this.serversOf(call.stream)
    const lot = time.random()
    if (lot < noise.readHangs) return this.trace.note("store", "a read hangs")
    const fails = lot < noise.readHangs + noise.readFails
    const isDirect = call.name === "DIRECT.GET"
    time.later(this.wayMs(client, servers), () => {
      if (fails) {
        const failure = isDirect ? noResponders : errorReply(noLeader)
        return this.reply(client, servers, inbox, [failure])
      }
      const atMs = isDirect ? this.replicaMs(servers) : this.leaderMs(servers, call)
      if (atMs === undefined) return
      const replies = this.server.answer(call, atMs)
      // A route that breaks loses a part of an answer.
      const isCut = replies.length > 1 && time.random() < noise.readFails
      const lost = isCut ? Math.floor(time.random() * replies.length) : -1
      this.reply(client, servers, inbox, replies.filter((_, at) => at !== lost))
    })
  }

  /** What the replica that answers has reached; undefined: it does not answer. */
  private replicaMs(servers: StreamServers): number | undefined {
    const { time } = this
    const which = Math.floor(time.random() * replicas)
    const reached = servers.reachedMs[which]
    if (reached === undefined) {
      return servers.leaderlessUntilMs > time.nowMs ? undefined : time.nowMs
    }
    const isFar = servers.pastUntilMs > time.nowMs
    const behindMs = time.random() * (isFar ? farBehindMaxMs : behindMaxMs + this.noise.slowMs)
    const atMs = Math.max(reached, time.nowMs - behindMs)
    servers.reachedMs[which] = atMs
    return atMs
  }

  /** What the leader that answers knows, be it one of the past; undefined: there is none. */
  private leaderMs(servers: StreamServers, { name }: ApiCall): number | undefined {
    const { nowMs } = this.time
    const isPast = servers.pastUntilMs > nowMs && this.time.random() < pastLeaderFraction
    // Only a majority purges.
    if (isPast && name !== "STREAM.PURGE") return servers.lostAtMs
    return servers.leaderlessUntilMs > nowMs ? undefined : nowMs
  }
}

/** Notes the commits that the runtime of a node waits for. */
const watched = ({ waiting }: Client, real: StorageApi): StorageApi => ({
  ...real,
  commit: (group, report) =>
    Effect.suspend(() => {
      const left = new Map(group.map(({ address }, at) => [at, keyOf(address)]))
      for (const key of left.values()) waiting.set(key, (waiting.get(key) ?? 0) + 1)
      const end = (at: number): void => {
        const key = left.get(at)
        if (key === undefined) return
        left.delete(at)
        const others = (waiting.get(key) ?? 0) - 1
        if (others > 0) waiting.set(key, others)
        else waiting.delete(key)
      }
      const commit = real.commit(group, (at, outcome) => {
        end(at)
        report?.(at, outcome)
      })
      return Effect.ensuring(commit, Effect.sync(() => [...left.keys()].forEach(end)))
    })
})
