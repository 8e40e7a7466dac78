/** Backup, restore and migration of stores. A filled store is compared with its source. */
import { Effect, type Scope } from "effect"
import type { Keyring } from "../../actors/index.ts"
import { StorageCorrupted } from "../../runtime/index.ts"
import { failpoint } from "../backend/index.ts"
import { type CommandFailed, exitCodes, failed } from "../command-failure.ts"
import { existingKeyringOf, keyFileOf, keyringIn, keyTextOf,
  newKeyringOf } from "../secret-key/index.ts"
import { type NodeSettings, storageLocation } from "../settings/index.ts"
import { observed } from "../streams.ts"
import { archiveFailed } from "./failure-messages.ts"
import { decoderOf, save } from "./file.ts"
import { ArchiveCorrupted, Encoder, StreamVerifier } from "./format.ts"
import { type ArchivePart, Counter, type Counts, differences } from "./parts.ts"
import { archiveOf, partsOf, readAll } from "./store-reader.ts"
import { changedParts, StoredSecrets, type UnopenedSecrets } from "./stored-secrets.ts"
import { writeParts } from "./store-writer.ts"
import { type ArchiveFailure, openSource, openTarget, type RestoreTarget } from "./stores.ts"

/** Called after every part, with the name of the current step and its counts. */
export type OnProgress = (step: string, counter: Counter) => void

/** What a complete archive contains. */
export interface BackupResult {
  readonly counts: Counts
  /** How many actors changed during each attempt to read them. */
  readonly changedActors: number
  /** How many blobs were removed while they were read. A running service does not report them. */
  readonly removedBlobs: number
  /** The size of the file. */
  readonly fileBytes: number
}

/** The comparison of what was written with what was read back. */
export interface RestoreResult {
  readonly rows: ReturnType<typeof differences>
  readonly isSame: boolean
  /** The secrets that were left out, since no key opened them. */
  readonly lost: UnopenedSecrets
}

/**
 * Runs a long task, which calls `onPart` after each part. If the effect is interrupted, the task
 * ends at its next part.
 */
const longTask = <A>(
  onProgress: () => void,
  task: (onPart: () => void) => Promise<A>
): Effect.Effect<A, ArchiveFailure> =>
  Effect.tryPromise({
    try: (signal) =>
      task(() => {
        signal.throwIfAborted()
        onProgress()
      }),
    // The tagged failures are Errors, too.
    catch: (error) => error instanceof Error ? error : new Error(String(error))
  })

/** Turns a failure into the failure of the command, with a message for the operator. */
const asCommand = <A>(
  work: Effect.Effect<A, ArchiveFailure, Scope.Scope>,
  store: string,
  file?: string
): Effect.Effect<A, CommandFailed> =>
  Effect.mapError(Effect.scoped(work), (failure) => archiveFailed(store, file, failure))

/** Writes the whole store of the settings into a file, or standard output for `-`. */
export const backUp = Effect.fnUntraced(function*(
  settings: NodeSettings,
  path: string,
  { isPlain, withKey }: { readonly isPlain: boolean; readonly withKey: boolean },
  onProgress: OnProgress
): Effect.fn.Return<BackupResult, ArchiveFailure, Scope.Scope> {
  const keyText = withKey ? yield* keyTextOf(settings) : undefined
  const source = yield* openSource(settings)
  const encoder = new Encoder()
  const fileBytes = yield* longTask(
    () => onProgress("backing up", encoder.counter),
    (onPart) => save(path, observed(archiveOf(source, encoder, keyText), onPart), isPlain)
  )
  const { changedActors, counts, removedBlobs } = encoder.counter
  return { counts, changedActors, removedBlobs, fileBytes }
}, (work, settings, path) => asCommand(work, storageLocation(settings), path))

/** Saves the archive of a running service, and verifies it before the file has its name. */
export const backUpRunning = Effect.fnUntraced(function*(
  archive: AsyncIterable<Uint8Array>,
  path: string,
  isPlain: boolean,
  onBytes: (sum: number) => void
): Effect.fn.Return<BackupResult, ArchiveFailure> {
  const verifier = new StreamVerifier()
  const fileBytes = yield* longTask(
    () => onBytes(verifier.bytes),
    (onPart) => save(path, observed(verifier.verify(archive), onPart), isPlain)
  )
  const { trailer } = verifier
  if (trailer === undefined) return yield* new ArchiveCorrupted({ detail: "it is truncated" })
  return { counts: trailer.counts, changedActors: trailer.unsteady, removedBlobs: 0, fileBytes }
}, (work, _, path) => asCommand(work, path, path))

/** Fills a new store and reads it back. Nodes serve the store only if the counts are the same. */
const fillAndCompare = Effect.fnUntraced(function*(
  target: RestoreTarget,
  stored: AsyncIterable<ArchivePart>,
  secrets: StoredSecrets,
  onProgress: OnProgress
): Effect.fn.Return<RestoreResult, ArchiveFailure> {
  const step = failpoint(process.env["RESTANTE_FAILPOINT"])
  const expected = new Counter()
  const parts = changedParts(stored, secrets, expected)
  yield* longTask(
    () => onProgress("writing", expected),
    (onPart) =>
      writeParts(target, parts, (part) => {
        if (part._tag === "Actor") step?.("committed", part.address)
        onPart()
      })
  )
  const actual = new Counter()
  yield* longTask(
    () => onProgress("reading back", actual),
    (onPart) =>
      readAll(partsOf(target), (part) => {
        actual.add(part)
        onPart()
      })
  )
  const rows = differences(expected.counts, actual.counts)
  const isSame = rows.every((row) => row.same)
  if (isSame) yield* target.complete
  return { rows, isSame, lost: secrets.unopened }
})

/** The failure of a store or archive that has secrets which no key here opens. */
const unopened = (where: string, settings: NodeSettings, { missingKeys }: StoredSecrets) => {
  const keys = missingKeys.length === 0
    ? "secrets that were changed"
    : `secrets under the key ${missingKeys.join(", ")}, which ${keyFileOf(settings)} does not have`
  return failed(
    `${where} has ${keys}`,
    "put the key file of the backed-up service there, or name it in SECRET_KEY_FILE. With " +
      "--without-secrets everything else is restored",
    exitCodes.configuration
  )
}

/** Reads and verifies a whole archive. Returns its secrets, and the key in it if it has one. */
const verify = Effect.fnUntraced(function*(
  path: string,
  own: Keyring | undefined,
  onProgress: OnProgress
): Effect.fn.Return<
  { readonly secrets: StoredSecrets; readonly keyText: string | undefined },
  ArchiveFailure
> {
  const decoder = decoderOf(path)
  let secrets: StoredSecrets | undefined
  const secretsOf = () => secrets ??= new StoredSecrets(own ?? keyringIn(decoder.keyText))
  yield* longTask(
    () => onProgress("verifying", decoder.counter),
    (onPart) =>
      readAll(decoder.parts(), (part) => {
        if (part._tag !== "Blob") secretsOf().changed(part)
        onPart()
      })
  ).pipe(
    Effect.catchIf(
      (failure) => failure instanceof StorageCorrupted,
      ({ detail }) => Effect.fail(new ArchiveCorrupted({ detail }))
    )
  )
  return { secrets: secretsOf(), keyText: decoder.keyText }
})

/** Fills the store of the settings from an archive, which is verified first. */
export const restore = Effect.fnUntraced(function*(
  settings: NodeSettings,
  path: string,
  withoutSecrets: boolean,
  onProgress: OnProgress
): Effect.fn.Return<RestoreResult, ArchiveFailure, Scope.Scope> {
  const own = yield* existingKeyringOf(settings)
  const { keyText, secrets } = yield* verify(path, own, onProgress)
  if (!secrets.isWhole && !withoutSecrets) return yield* unopened(path, settings, secrets)
  const keyring = own ?? (yield* newKeyringOf(settings, keyText))
  const target = yield* openTarget(settings)
  const restored = new StoredSecrets(keyring, withoutSecrets)
  return yield* fillAndCompare(target, decoderOf(path).parts(), restored, onProgress)
}, (work, settings, path) => asCommand(work, storageLocation(settings), path))

/** Fills one store from another: a new cluster from a stopped embedded store. */
export const migrate = Effect.fnUntraced(function*(
  from: NodeSettings,
  to: NodeSettings,
  withoutSecrets: boolean,
  onProgress: OnProgress
): Effect.fn.Return<RestoreResult, ArchiveFailure, Scope.Scope> {
  const source = yield* openSource(from)
  const keyring = yield* existingKeyringOf(from)
  const found = new StoredSecrets(keyring)
  yield* longTask(() => {}, (onPart) =>
    readAll(partsOf(source), (part) => {
      if (part._tag !== "Blob") found.changed(part)
      onPart()
    }))
  if (!found.isWhole && !withoutSecrets) {
    return yield* unopened(storageLocation(from), from, found)
  }
  const target = yield* openTarget(to)
  const secrets = new StoredSecrets(keyring, withoutSecrets)
  return yield* fillAndCompare(target, partsOf(source), secrets, onProgress)
}, (work, from, to) => asCommand(work, `${storageLocation(from)} or ${storageLocation(to)}`))
