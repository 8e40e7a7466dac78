/** Whether this node takes requests (protocol §6), for load balancers and orchestrators. */
import { Effect, Exit } from "effect"
import { makeTurn } from "../../actors/index.ts"
import { type AskFailure, type Peers, type Placement, type RecordsApi, SHARDS, type StorageApi,
  type StorageFailure } from "../../runtime/index.ts"

/** The parts of a node that its readiness depends on. */
export interface ReadinessParts {
  readonly placement: Pick<Placement["Service"], "isLeaseValid" | "owns" | "view">
  readonly storage: Pick<StorageApi, "health" | "streamOf">
  readonly records: Pick<RecordsApi, "health">
  readonly system: Peers
}

/** How long the turns of a check may take; health checks usually wait 3 s or longer. */
const turnMsMax = 2_000

/**
 * How long a turn that succeeded is valid. `/readyz` is open to everybody: whoever asks often must
 * not make the store write often.
 */
const turnValidMs = 1_000

/** Fails, with the reason, while the node is not a member of its cluster or is leaving it. */
const checkMembership = (
  placement: ReadinessParts["placement"]
): Effect.Effect<void, string> =>
  Effect.suspend(() => {
    if (!placement.isLeaseValid()) {
      return Effect.fail("this node is currently not a member of its cluster")
    }
    const { nodes, self } = placement.view()
    const leaves = nodes.some(({ leaving, node }) => node === self && leaving)
    return leaves ? Effect.fail("this node is stopping") : Effect.void
  })

/** Shards by the stream that has them, or by the node that owns them; both ascending. */
type ShardGroups<Key> = ReadonlyMap<Key, ReadonlyArray<number>>

const groupsOf = <Key extends number | string>(
  keyOf: (shard: number) => Key | undefined
): ShardGroups<Key> => {
  const groups = new Map<Key, Array<number>>()
  for (let shard = 0; shard < SHARDS; shard++) {
    const key = keyOf(shard)
    if (key === undefined) continue
    const group = groups.get(key)
    group === undefined ? groups.set(key, [shard]) : group.push(shard)
  }
  return new Map([...groups].toSorted(([one], [other]) => one < other ? -1 : 1))
}

/** The first after `last`, round and round; undefined without any. */
const nextOf = <Key extends number | string>(
  keys: ReadonlyArray<Key>,
  last: Key | undefined
): Key | undefined => keys.find((key) => last !== undefined && key > last) ?? keys[0]

/** What a node remembers of its turns, so that each group, and each shard of one, has its own. */
class TurnLog<Key extends number | string> {
  private last: Key | undefined
  private worked: Key | undefined
  private readonly lastShards = new Map<Key, number>()

  /** The group whose turn it is, and one for when that fails: which worked last, if any did. */
  next(groups: ShardGroups<Key>): ReadonlyArray<Key> {
    const keys = [...groups.keys()]
    const next = nextOf(keys, this.last)
    if (next === undefined) return []
    this.last = next
    const { worked } = this
    const isKnown = worked !== undefined && worked !== next && groups.has(worked)
    const other = isKnown ? worked : nextOf(keys, next)
    return other === undefined || other === next ? [next] : [next, other]
  }

  /** The next shard of a group, which has one. */
  begin(groups: ShardGroups<Key>, key: Key): number {
    const shard = nextOf(groups.get(key) ?? [], this.lastShards.get(key)) ?? 0
    this.lastShards.set(key, shard)
    return shard
  }

  succeeded(key: Key): void {
    this.worked = key
  }
}

const reasonOf = (failure: AskFailure | StorageFailure): string =>
  "detail" in failure ? failure.detail : failure._tag

/**
 * A turn in the next shard of a group: fails, with the reason, unless an actor of the shard commits
 * and is read back in time.
 */
const turnIn = <Key extends number | string>(
  system: Peers,
  log: TurnLog<Key>,
  groups: ShardGroups<Key>,
  key: Key,
  durationMs: number
): Effect.Effect<void, string> =>
  Effect.gen(function*() {
    const shard = log.begin(groups, key)
    const owner = typeof key === "string" ? key : "this node"
    const actor = `an actor of ${owner} in shard ${shard}`
    const isRead = yield* makeTurn(system, shard).pipe(
      Effect.mapError((failure) => `${actor} did not commit (${reasonOf(failure)})`),
      Effect.timeoutOrElse({
        duration: durationMs,
        orElse: () => Effect.fail(`${actor} did not commit within ${durationMs} ms`)
      })
    )
    if (!isRead) {
      return yield* Effect.fail(
        `the store does not return what it has acknowledged in shard ${shard}`
      )
    }
    log.succeeded(key)
  })

/** Turns in the next groups, until one succeeds. */
const nextTurns = <Key extends number | string>(
  system: Peers,
  log: TurnLog<Key>,
  groups: ShardGroups<Key>
): Effect.Effect<void, string> => {
  const keys = log.next(groups)
  const none: Effect.Effect<void, string> = Effect.fail("no node owns a shard yet")
  const [first = none, ...more] = keys.map((key) =>
    turnIn(system, log, groups, key, turnMsMax / keys.length)
  )
  return more.reduce((turn, other) => Effect.catch(turn, () => other), first)
}

/**
 * The turns of a check: in streams of this node; or at other nodes if it owns no shard, since it
 * has just joined, or is one of very many. A node is of use while something works: a stream that
 * stalls does so at every node, and to take all out of rotation would stop the other streams too.
 */
const checkTurns = (
  { placement, storage, system }: ReadinessParts
): Effect.Effect<void, string> => {
  const own = new TurnLog<number>()
  const others = new TurnLog<string>()
  return Effect.suspend(() => {
    const streams = groupsOf((shard) => placement.owns(shard) ? storage.streamOf(shard) : undefined)
    if (streams.size > 0) return nextTurns(system, own, streams)
    const { owners, self } = placement.view()
    const nodes = groupsOf((shard) => owners[shard] === self ? undefined : owners[shard])
    return nextTurns(system, others, nodes)
  })
}

/** One check for all who ask at the same time, and for those who ask soon after it succeeded. */
const sharedCheck = (parts: ReadinessParts): Effect.Effect<void, string> => {
  const validMs = (turn: Exit.Exit<void, string>) => Exit.isSuccess(turn) ? turnValidMs : 0
  const [turn] = Effect.runSync(Effect.cachedInvalidateWithTTL(checkTurns(parts), validMs))
  return turn
}

/**
 * Fails with the reason while this node takes no requests: it is no member of its cluster, is
 * stopping, or its store does not work, which turns of real actors show: in time those of all
 * streams and shards of this node.
 */
export const readinessOf = (parts: ReadinessParts): Effect.Effect<void, string> => {
  const { placement, records, storage } = parts
  const health = Effect.mapError(
    Effect.andThen(storage.health, records.health),
    ({ detail }) => detail
  )
  return checkMembership(placement).pipe(
    Effect.andThen(health),
    Effect.andThen(sharedCheck(parts))
  )
}
