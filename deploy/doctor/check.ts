/** `restante check`: verifies a stopped store, or a cluster while its nodes run. */
import { Effect, type Scope } from "effect"
import type { UsageLedger } from "../../actors/index.ts"
import { inspect } from "../../runtime/embedded/index.ts"
import { archiveFailed, type ArchiveFailure, openSource } from "../archive/index.ts"
import { backendFailed, isClustered } from "../backend/index.ts"
import { behaviorsOf, outboundOf } from "../behaviors.ts"
import type { CommandFailed } from "../command-failure.ts"
import { baseUrlOf, type NodeSettings, storageLocation } from "../settings/index.ts"
import { inspectStore } from "./store-inspection.ts"

/** The result: counts, and one line for each problem. */
export interface CheckReport {
  /** The database of an embedded store; undefined in a cluster, or when it cannot be opened. */
  readonly store?: string | undefined
  readonly counts: Readonly<Record<string, number>>
  readonly problems: ReadonlyArray<string>
}

const kindCounts = (
  actors: Readonly<Record<string, number>>
): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(actors).map(([kind, count]) => [`actors ${kind}`, count]))

const checkEmbedded = (
  { dataDir, storageEngine }: NodeSettings
): Effect.Effect<CheckReport, CommandFailed> =>
  inspect(dataDir, storageEngine).pipe(
    Effect.map(({ counts: { actors, ...counts }, engine, faults }) => ({
      store: engine,
      counts: { ...kindCounts(actors), ...counts },
      problems: faults
    })),
    // Corruption that prevents a start is a result of this command, not its failure.
    Effect.catchTag(
      "StorageCorrupted",
      ({ detail }) => Effect.succeed<CheckReport>({ counts: {}, problems: [detail] })
    ),
    Effect.mapError((failure) => backendFailed(dataDir, failure))
  )

/** The check commits nothing, so that nothing is counted. */
const notCounted: Pick<UsageLedger, "submit"> = {
  submit: () => Effect.die("a check counts nothing")
}

/** Reads the whole cluster, and decodes every state by its behavior. */
const checkCluster = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<CheckReport, ArchiveFailure, Scope.Scope> {
  const { blobs, contents, records } = yield* openSource(settings)
  // The check uses only the decoders of the behaviors, and sends no request.
  const outbound = yield* outboundOf(settings.outboundAllow)
  const baseUrl = baseUrlOf(settings, settings.port)
  const all = behaviorsOf(settings, baseUrl, { blobs, records, outbound, usage: notCounted })
  const { counts, faults } = yield* Effect.tryPromise({
    try: () => inspectStore({ blobs, contents }, all),
    catch: (error) => error instanceof Error ? error : new Error(String(error))
  })
  const { actors, contents: _, ...rest } = counts
  return { counts: { ...kindCounts(actors), ...rest }, problems: faults }
})

/** Reads everything in the store of the settings. Fails when an embedded store is in use. */
export const check = (settings: NodeSettings): Effect.Effect<CheckReport, CommandFailed> =>
  isClustered(settings)
    ? Effect.scoped(checkCluster(settings)).pipe(
      Effect.catch((failure) =>
        "_tag" in failure && failure._tag === "StorageCorrupted"
          ? Effect.succeed<CheckReport>({ counts: {}, problems: [failure.detail] })
          : Effect.fail(archiveFailed(storageLocation(settings), undefined, failure))
      )
    )
    : checkEmbedded(settings)
