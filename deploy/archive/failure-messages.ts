/** The message for the operator when a command on archives fails. */
import { isTagged } from "effect/Predicate"
import { backendFailed } from "../backend/index.ts"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import { FileExists } from "./file.ts"
import { ArchiveCorrupted } from "./format.ts"
import type { ArchiveFailure, OpeningFailure } from "./stores.ts"

const openingTags: ReadonlyArray<OpeningFailure["_tag"]> = [
  "StorageLocked",
  "StorageCorrupted",
  "StorageFull",
  "StorageUnavailable",
  "EngineDiffers",
  "EngineMissing",
  "StoreFormatUnsupported",
  "NatsTooOld",
  "BucketsDiffer"
]

const isOpening = (failure: ArchiveFailure): failure is OpeningFailure =>
  openingTags.some((tag) => isTagged(failure, tag))

/** The failure of a command on the store at `store` and the archive `file`. */
export const archiveFailed = (
  store: string,
  file: string | undefined,
  failure: ArchiveFailure
): CommandFailed => {
  if (failure instanceof CommandFailed) return failure
  if (isOpening(failure)) return backendFailed(store, failure)
  const archive = file ?? store
  const message = failure instanceof ArchiveCorrupted
    ? `${archive} cannot be used: ${failure.detail}`
    : failure instanceof FileExists
    ? `${archive} already exists: give a new file`
    : failure.message
  return new CommandFailed({ message, exitCode: exitCodes.failed })
}
