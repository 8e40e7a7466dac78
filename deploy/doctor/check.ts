/** `restante check`: verifies a stopped store, or a cluster while its nodes run. */
import { Effect, type Scope } from "effect"
import { type UsageLedger, Vapid } from "../../actors/index.ts"
import { inspect } from "../../runtime/embedded/index.ts"
import { archiveFailed, type ArchiveFailure, openSource, partsOf,
  StoredSecrets } from "../archive/index.ts"
import { backendFailed, isClustered } from "../backend/index.ts"
import { behaviorsOf, outboundOf } from "../behaviors.ts"
import type { CommandFailed } from "../command-failure.ts"
import { baseUrlOf, type NodeSettings, storageLocation } from "../settings/index.ts"
import { keyringOf } from "../secret-key/index.ts"
import { inspectStore, secretFaults } from "./store-inspection.ts"

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

/** The faults of the secrets of an embedded store: each must open with a key of the settings. */
const embeddedSecretFaults = Effect.fnUntraced(function*(settings: NodeSettings) {
  const secrets = new StoredSecrets(yield* keyringOf(settings))
  const source = yield* openSource(settings)
  yield* Effect.tryPromise({
    try: async () => {
      for await (const part of partsOf(source)) if (part._tag !== "Blob") secrets.changed(part)
    },
    catch: (error) => error instanceof Error ? error : new Error(String(error))
  })
  return secretFaults(secrets)
})

const checkEmbedded = (settings: NodeSettings): Effect.Effect<CheckReport, CommandFailed> => {
  const { dataDir, storageEngine } = settings
  const inspected = inspect(dataDir, storageEngine).pipe(
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
  return Effect.flatMap(
    inspected,
    (report) =>
      report.problems.length > 0 ? Effect.succeed(report) : embeddedSecretFaults(settings).pipe(
        Effect.scoped,
        Effect.map((problems) => ({ ...report, problems })),
        Effect.mapError((failure) => archiveFailed(dataDir, undefined, failure))
      )
  )
}

/** The check commits nothing, so that nothing is counted. */
const notCounted: Pick<UsageLedger, "entry" | "submit"> = {
  submit: () => Effect.die("a check counts nothing"),
  entry: () => Effect.die("a check removes nothing")
}

/** Reads the whole cluster, and decodes every state by its behavior. */
const checkCluster = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<CheckReport, ArchiveFailure, Scope.Scope> {
  const { blobs, contents, records } = yield* openSource(settings)
  const keyring = yield* keyringOf(settings)
  // The check uses only the decoders of the behaviors, and sends no request.
  const outbound = yield* outboundOf(settings.outboundAllow)
  const baseUrl = baseUrlOf(settings, settings.port)
  const ports = { blobs, keyring, records, outbound, usage: notCounted, vapid: new Vapid([]) }
  const all = behaviorsOf(settings, baseUrl, ports)
  const { counts, faults } = yield* Effect.tryPromise({
    try: () => inspectStore({ blobs, contents }, all, keyring),
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
