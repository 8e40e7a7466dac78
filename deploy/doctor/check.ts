/** Verifies a stopped store, or a cluster with its nodes running. */
import { Effect, type Scope } from "effect"
import { behaviors, linksUnder } from "../../actors/index.ts"
import { makeOutbound } from "../../actors/outbound/index.ts"
import { notificationDocuments } from "../../http/index.ts"
import { inspect } from "../../runtime/embedded/index.ts"
import { type ArchiveFailure, explained, openSource } from "../archive/index.ts"
import { backendFailed, isClustered } from "../backend/index.ts"
import type { CommandFailed } from "../command-failure.ts"
import { baseUrlOf, type NodeSettings, storageLocation } from "../settings/index.ts"
import { inspect as inspectAll } from "./store-inspection.ts"

/** What was found: counts by what is counted, and one line for each problem. */
export interface CheckReport {
  /** The database of an embedded store; undefined in a cluster, or when it could not be opened. */
  readonly store?: string | undefined
  readonly counts: Readonly<Record<string, number>>
  readonly problems: ReadonlyArray<string>
}

const checkStopped = (
  { dataDir, storageEngine }: NodeSettings
): Effect.Effect<CheckReport, CommandFailed> =>
  inspect(dataDir, storageEngine).pipe(
    Effect.map(({ counts: { actors, ...counts }, engine, faults }) => ({
      store: engine,
      counts: {
        ...Object.fromEntries(
          Object.entries(actors).map(([kind, number]) => [`actors ${kind}`, number])
        ),
        ...counts
      },
      problems: faults
    })),
    // What keeps a node from starting is what this command was called to find.
    Effect.catchTag(
      "StorageCorrupted",
      ({ detail }) => Effect.succeed<CheckReport>({ counts: {}, problems: [detail] })
    ),
    Effect.mapError((failure) => backendFailed(dataDir, failure))
  )

/** Reads all of the cluster, as its behaviors do. */
const checkCluster = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<CheckReport, ArchiveFailure, Scope.Scope> {
  const { blobs, contents, records } = yield* openSource(settings)
  // They decode, and perform nothing.
  const all = behaviors({
    blobs,
    records,
    outbound: yield* makeOutbound({
      allow: settings.outboundAllow,
      userAgent: "restante",
      nowMs: () => Date.now(),
      random: Math.random
    }),
    links: linksUnder(baseUrlOf(settings, settings.port)),
    documents: notificationDocuments,
    schedule: settings.retrySchedule,
    keepMs: settings.outgoingRetention,
    arriving: new Set(),
    random: Math.random
  })
  const { counts, faults } = yield* Effect.tryPromise({
    try: () => inspectAll({ blobs, contents }, all),
    catch: (error) => error instanceof Error ? error : new Error(String(error))
  })
  const { actors, contents: _, ...rest } = counts
  const kinds = Object.entries(actors).map(([kind, number]) => [`actors ${kind}`, number])
  return { counts: { ...Object.fromEntries(kinds), ...rest }, problems: faults }
})

/**
 * Reads everything that is kept where the settings say; fails when the embedded store is in use, or
 * it cannot be read.
 */
export const check = (settings: NodeSettings): Effect.Effect<CheckReport, CommandFailed> =>
  isClustered(settings)
    ? Effect.scoped(checkCluster(settings)).pipe(
      Effect.catch((failure) => {
        const corruption = "_tag" in failure && failure._tag === "StorageCorrupted"
        return corruption
          ? Effect.succeed<CheckReport>({ counts: {}, problems: [failure.detail] })
          : Effect.fail(explained(storageLocation(settings), undefined, failure))
      })
    )
    : checkStopped(settings)
