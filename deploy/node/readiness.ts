/** Whether this node takes requests (protocol §6), for load balancers and orchestrators. */
import { Effect, Exit } from "effect"
import { makeTurn } from "../../actors/index.ts"
import { type AskFailure, type Peers, type Placement, type RecordsApi, SHARDS, type StorageApi,
  type StorageFailure } from "../../runtime/index.ts"

/** The parts of a node that its readiness depends on. */
export interface ReadinessParts {
  readonly placement: Pick<Placement["Service"], "isLeaseValid" | "owns" | "view">
  readonly storage: Pick<StorageApi, "health">
  readonly records: Pick<RecordsApi, "health">
  readonly system: Peers
}

/** How long a turn may take; health checks usually wait 3 s or longer. */
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

/** The first shard of this node; undefined while it has none, as just after it has joined. */
const firstShard = ({ owns }: ReadinessParts["placement"]): number | undefined => {
  for (let shard = 0; shard < SHARDS; shard++) if (owns(shard)) return shard
  return undefined
}

const reasonOf = (failure: AskFailure | StorageFailure): string =>
  "detail" in failure ? failure.detail : failure._tag

/** Fails, with the reason, unless an actor of this node commits and is read back in time. */
const checkTurn = ({ placement, system }: ReadinessParts): Effect.Effect<void, string> =>
  Effect.suspend(() => {
    const shard = firstShard(placement)
    if (shard === undefined) return Effect.void
    return makeTurn(system, shard).pipe(
      Effect.mapError((failure) => `an actor of this node did not commit (${reasonOf(failure)})`),
      Effect.flatMap((isRead) =>
        isRead ? Effect.void : Effect.fail("the store does not return what it has acknowledged")
      ),
      Effect.timeoutOrElse({
        duration: turnMsMax,
        orElse: () => Effect.fail(`an actor of this node did not commit within ${turnMsMax} ms`)
      })
    )
  })

/** One turn for all who ask at the same time, and for those who ask soon after it succeeded. */
const sharedTurn = (parts: ReadinessParts): Effect.Effect<void, string> => {
  const validMs = (turn: Exit.Exit<void, string>) => Exit.isSuccess(turn) ? turnValidMs : 0
  const [turn] = Effect.runSync(Effect.cachedInvalidateWithTTL(checkTurn(parts), validMs))
  return turn
}

/**
 * Fails with the reason while this node takes no requests: it is no member of its cluster, is
 * stopping, or its store does not work, which a turn of a real actor shows.
 */
export const readinessOf = (parts: ReadinessParts): Effect.Effect<void, string> => {
  const { placement, records, storage } = parts
  const health = Effect.mapError(
    Effect.andThen(storage.health, records.health),
    ({ detail }) => detail
  )
  return checkMembership(placement).pipe(
    Effect.andThen(health),
    Effect.andThen(sharedTurn(parts))
  )
}
