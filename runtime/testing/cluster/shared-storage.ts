/**
 * The store of all nodes, by the contract of the storage port: several streams, each of which
 * stores commits atomically and in their order. Streams stall, lose their leader and answer each by
 * itself, and each commit of a group has its own fate. Nodes may receive outcomes late or never.
 */
import { Effect, Layer } from "effect"
import { type Address, keyOf, shardOf, StorageUnavailable,
  ValueTooLarge } from "../../actor/index.ts"
import { makeMemoryStorage } from "../../memory/index.ts"
import { type Commit, type CommitOutcome, type ReportOutcome, Storage,
  type StorageApi } from "../../ports/index.ts"
import type { Computer, Trace, VirtualTime } from "../time/index.ts"
import { type ClusterNoise, type CommitFate, commitFateOf, streamCount } from "./noise.ts"

/** A node's connection to the store. */
export interface StorageLine {
  /** It is opened when the node starts. */
  readonly storage: Layer.Layer<Storage, unknown>
  /** Calls before this time arrive at this time. */
  cutUntilMs: number
}

/** What a commit has changed of its actor. */
export type StoredChange = Pick<Commit, "address" | "append" | "remove" | "state">

/** What is observed of a store during a run. */
export interface StoreEvents {
  /** The store has stored a commit of a node. */
  readonly onApplied: (computer: Computer, change: StoredChange) => void
  /** A node that still waits learns that the commit of an actor is stored. */
  readonly onAnswered: (computer: Computer, actor: Address) => void
}

/** The store of all nodes, with faults. */
export interface SharedStore {
  /** What is stored. */
  readonly inner: StorageApi
  noise: ClusterNoise
  /** No stream answers any node before this time. */
  stalledUntilMs: number
  /** By this time, every late commit made so far is stored. */
  readonly settledMs: number
  /** One stream answers nobody for a while. */
  readonly stall: (stream: number, forMs: number) => void
  /** One stream loses its leader: what is in flight there has any fate and no answer. */
  readonly loseLeader: (stream: number, forMs: number) => void
  /** All streams have leaders, and answer. */
  readonly heal: () => void
  readonly connect: (computer: Computer) => StorageLine
}

type Commits = Effect.Effect<ReadonlyArray<CommitOutcome>, StorageUnavailable>
/** Applies one commit to the store; tests plant bugs here. */
export type ApplyCommit = (inner: StorageApi, commit: Commit, later: NodeLater) => CommitOutcome
/** Runs a function on the node of the commit, if the node still runs. */
export type NodeLater = (delayMs: number, run: () => void) => void

/** Applies a commit by the contract of the storage port. */
export const faithful = (inner: StorageApi, commit: Commit): CommitOutcome => {
  const [outcome] = Effect.runSync(inner.commit([commit]))
  if (outcome === undefined) throw new Error("a commit has no outcome")
  return outcome
}

/** Bytes of the largest text of a commit: the store's `max_payload`, smaller than a real one. */
const textBytesMax = 16 * 1024
/** Shortest and longest duration of a commit that hangs, ms. */
const lateMinMs = 1_000
const lateMaxMs = 40_000
const wayMaxMs = 6
/** Fraction of the calls that are refused while their stream has no leader; the others wait. */
const refusedFraction = 0.4

/** The members of one group on their way to a stream. */
interface SentGroup {
  /** The node no longer waits for the group. */
  isOver: boolean
  readonly commitAt: (index: number) => Commit
  /** Stores a member. */
  readonly take: (index: number) => CommitOutcome
  /** Sends outcomes of these members to the node. */
  readonly answer: (
    indexes: ReadonlyArray<number>,
    answered: ReadonlyArray<CommitOutcome>
  ) => void
}

/** One stream of the store, with a leader of its own. */
class Stream {
  /** It answers no node before this time. */
  stalledUntilMs = 0
  /** It has no leader before this time. */
  leaderlessUntilMs = 0
  /** Grows when a leader is lost, which knows nothing of what is in flight. */
  term = 0
}

const indeterminate: CommitOutcome = { _tag: "Indeterminate" }

const unavailable = (detail: string): StorageUnavailable => new StorageUnavailable({ detail })

const refusedAs = (failure: StorageUnavailable | ValueTooLarge): CommitOutcome => ({
  _tag: "Refused",
  failure
})

/** The refusal of a commit that can never be stored; undefined if it fits. */
const tooLarge = ({ address, append, state }: Commit): CommitOutcome | undefined => {
  let bytes = Buffer.byteLength(state ?? "")
  for (const { value } of append) bytes = Math.max(bytes, Buffer.byteLength(value))
  if (bytes <= textBytesMax) return undefined
  return refusedAs(new ValueTooLarge({ detail: `${keyOf(address)}: a text of ${bytes} bytes` }))
}

export class ContractStore implements SharedStore {
  readonly inner: StorageApi
  noise: ClusterNoise
  stalledUntilMs = 0
  settledMs = 0
  private readonly events: StoreEvents
  /** By computer: actors with a commit that is stored later; until then they cannot be loaded. */
  private readonly underWay = new Set<string>()
  private readonly streams = Array.from({ length: streamCount }, () => new Stream())
  private readonly time: VirtualTime
  private readonly trace: Trace
  private readonly apply: ApplyCommit

  constructor(
    time: VirtualTime,
    trace: Trace,
    noise: ClusterNoise,
    events: StoreEvents,
    apply: ApplyCommit
  ) {
    this.events = events
    this.time = time
    this.trace = trace
    this.noise = noise
    this.apply = apply
    this.inner = { ...makeMemoryStorage(), streamOf: (shard) => shard % streamCount }
  }

  stall(stream: number, forMs: number): void {
    const one = this.stream(stream)
    one.stalledUntilMs = Math.max(one.stalledUntilMs, this.time.nowMs + forMs)
  }

  loseLeader(stream: number, forMs: number): void {
    const one = this.stream(stream)
    one.term++
    one.leaderlessUntilMs = Math.max(one.leaderlessUntilMs, this.time.nowMs + forMs)
  }

  heal(): void {
    this.stalledUntilMs = 0
    for (const stream of this.streams) {
      stream.stalledUntilMs = 0
      stream.leaderlessUntilMs = 0
    }
  }

  connect(computer: Computer): StorageLine {
    const { inner, time } = this
    const line: StorageLine = {
      cutUntilMs: 0,
      storage: Layer.succeed(Storage, {
        engine: inner.engine,
        streamOf: inner.streamOf,
        commit: this.committing(computer, (stream) => wayMs(stream)),
        load: (address) =>
          Effect.suspend(() =>
            this.underWay.has(`${computer.name} ${keyOf(address)}`)
              ? Effect.fail(unavailable("a commit of the actor is in doubt"))
              : read(shardOf(address), () => inner.load(address))
          ),
        read: (address, from, limit) =>
          read(shardOf(address), () => inner.read(address, from, limit)),
        timers: (shard, limit, from, untilMs) =>
          read(shard, () => inner.timers(shard, limit, from, untilMs)),
        scan: (kind, after, limit) => read(0, () => inner.scan(kind, after, limit)),
        health: Effect.void
      })
    }
    const wayMs = ({ leaderlessUntilMs, stalledUntilMs }: Stream): number => {
      const untilMs = Math.max(
        this.stalledUntilMs,
        line.cutUntilMs,
        stalledUntilMs,
        leaderlessUntilMs
      )
      const ownMs = 0.1 + time.random() * (wayMaxMs + this.noise.slowMs / 2)
      return Math.max(0, untilMs - time.nowMs) + ownMs
    }
    /** A read of the stream of a shard. */
    const read = <A>(
      shard: number,
      make: () => Effect.Effect<A, unknown>
    ): Effect.Effect<A, StorageUnavailable> =>
      Effect.callback((resume) => {
        const stream = this.stream(inner.streamOf(shard))
        const lot = time.random()
        if (lot < this.noise.readHangs) return this.trace.note("store", "a read hangs")
        const isRefused = lot < this.noise.readHangs + this.noise.readFails || this.refuses(stream)
        const thereMs = isRefused ? wayMaxMs : wayMs(stream)
        time.later(thereMs, () => {
          const exit = isRefused
            ? Effect.fail(unavailable("as simulated"))
            : Effect.runSyncExit(make()) as Effect.Effect<A, StorageUnavailable>
          time.on(computer, isRefused ? wayMaxMs : wayMs(stream), () => resume(exit))
        })
      })
    return line
  }

  /** The commits of one node. */
  private committing(
    computer: Computer,
    wayMs: (stream: Stream) => number
  ): StorageApi["commit"] {
    const { inner, time } = this
    /** When the latest group arrives at each stream. */
    const arrivedMs = this.streams.map(() => 0)
    return (group, report) =>
      Effect.callback((resume) => {
        const [at = 0, ...others] = new Set(
          group.map(({ address }) => inner.streamOf(shardOf(address)))
        )
        if (others.length > 0) throw new Error("a group has commits of several streams")
        const stream = this.stream(at)
        const refuses = this.refuses(stream)
        const fates = group.map((one): CommitFate | CommitOutcome =>
          tooLarge(one) ?? (refuses ? "refused" : commitFateOf(this.noise, time.random))
        )
        const way = () => wayMs(stream)
        const sent = this.send(computer, group, way, report, resume)
        const onTime = this.sendLate(computer, fates, sent)
        if (onTime.length > 0) {
          // Calls arrive in their order, unless they hang.
          const atMs = Math.max(arrivedMs[at] ?? 0, time.nowMs + wayMs(stream))
          arrivedMs[at] = atMs
          this.sendOnTime(stream, atMs, onTime, fates, sent)
        }
        return Effect.sync(() => void (sent.isOver = true))
      })
  }

  /** A group on its way: how its members are stored, and how their outcomes return. */
  private send(
    computer: Computer,
    group: ReadonlyArray<Commit>,
    wayMs: () => number,
    report: ReportOutcome | undefined,
    resume: (outcomes: Commits) => void
  ): SentGroup {
    const outcomes: Array<CommitOutcome> = []
    let left = group.length
    const commitAt = (index: number): Commit => {
      const one = group[index]
      if (one === undefined) throw new RangeError(`the group has no commit ${index}`)
      return one
    }
    const sent: SentGroup = {
      isOver: false,
      commitAt,
      take: (index) => this.take(computer, commitAt(index)),
      answer: (indexes, answered) =>
        void this.time.on(computer, wayMs(), () => {
          if (sent.isOver) return
          for (const [index, outcome] of answered.entries()) {
            const which = indexes[index] ?? 0
            const of = group[which]
            if (of !== undefined && outcome._tag === "Committed") {
              this.events.onAnswered(computer, of.address)
            }
            outcomes[which] = outcome
            report?.(which, outcome)
          }
          left -= answered.length
          if (left === 0) resume(Effect.succeed(outcomes))
        })
    }
    return sent
  }

  /** Handles the members that do not arrive with their group; returns the indexes of the others. */
  private sendLate(
    computer: Computer,
    fates: ReadonlyArray<CommitFate | CommitOutcome>,
    sent: SentGroup
  ): ReadonlyArray<number> {
    const onTime: Array<number> = []
    for (const [index, fate] of fates.entries()) {
      if (fate === "kept" || fate === "lost" || fate === "doubt") {
        onTime.push(index)
        continue
      }
      const mark = `${computer.name} ${keyOf(sent.commitAt(index).address)}`
      if (fate === "late" || fate === "silent") this.underWay.add(mark)
      const land = (): CommitOutcome => {
        this.underWay.delete(mark)
        return sent.take(index)
      }
      this.outOfTurn(computer, fate, land, (outcome) => sent.answer([index], [outcome]))
    }
    return onTime
  }

  /** Stores the members that arrive together, at this time. */
  private sendOnTime(
    stream: Stream,
    atMs: number,
    onTime: ReadonlyArray<number>,
    fates: ReadonlyArray<CommitFate | CommitOutcome>,
    sent: SentGroup
  ): void {
    const { time } = this
    const { term } = stream
    time.later(atMs - time.nowMs, () => {
      const indexes: Array<number> = []
      const answered: Array<CommitOutcome> = []
      // The new leader has some of what the old one was sent.
      const isLost = stream.term !== term
      for (const index of onTime) {
        const fate = fates[index]
        const isCertain = !isLost && fate !== "doubt"
        const outcome = isCertain || time.random() < 0.5 ? sent.take(index) : undefined
        if (isLost || fate === "lost") continue
        indexes.push(index)
        answered.push(fate === "kept" && outcome !== undefined ? outcome : indeterminate)
      }
      if (answered.length > 0) sent.answer(indexes, answered)
    })
  }

  /** What happens to a commit that does not arrive with its group. */
  private outOfTurn(
    computer: Computer,
    fate: CommitFate | CommitOutcome,
    take: () => CommitOutcome,
    answer: (outcome: CommitOutcome) => void
  ): void {
    if (typeof fate === "object") return answer(fate)
    this.trace.note("store", () => `${computer.name}: a commit is ${fate}`)
    if (fate === "never") return
    if (fate === "refused") return answer(refusedAs(unavailable("as simulated")))
    const { time } = this
    const lateMs = lateMinMs + time.random() * (lateMaxMs - lateMinMs)
    this.settledMs = Math.max(this.settledMs, time.nowMs + lateMs)
    time.later(lateMs, () => {
      const outcome = take()
      if (fate === "late") answer(outcome)
    })
  }

  private stream(at: number): Stream {
    const stream = this.streams[at]
    if (stream === undefined) throw new RangeError(`there is no stream ${at}`)
    return stream
  }

  /** Whether a call is refused because its stream has no leader. */
  private refuses({ leaderlessUntilMs }: Stream): boolean {
    return leaderlessUntilMs > this.time.nowMs && this.time.random() < refusedFraction
  }

  private take(computer: Computer, commit: Commit): CommitOutcome {
    const outcome = this.apply(this.inner, commit, (ms, run) => this.time.on(computer, ms, run))
    this.trace.note("store", () => {
      const { append, expected, state, timer } = commit
      const what = `${keyOf(commit.address)} r${expected} +${append.length} timer ${timer}`
      return `${computer.name}: ${what} ${state ?? ""} ${outcome._tag}`
    })
    if (outcome._tag === "Committed") this.events.onApplied(computer, commit)
    return outcome
  }
}
