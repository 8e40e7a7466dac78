/** What the operator is told when a command on archives comes to nothing. */
import { isTagged } from "effect/Predicate"
import { backendFailed } from "../backend/index.ts"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import { FileThere } from "./file.ts"
import { ArchiveCorrupted } from "./format.ts"
import type { ArchiveFailure, OpeningFailure } from "./stores.ts"

const tags: ReadonlyArray<OpeningFailure["_tag"]> = [
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
  tags.some((tag) => isTagged(failure, tag))

/** `place` is the store, `file` the archive; `untouched`: nothing was changed. */
export const explained = (
  place: string,
  file: string | undefined,
  failure: ArchiveFailure
): CommandFailed => {
  const ends = (message: string): CommandFailed =>
    new CommandFailed({ message, exitCode: exitCodes.failed })
  if (failure instanceof CommandFailed) return failure
  if (isOpening(failure)) return backendFailed(place, failure)
  if (failure instanceof ArchiveCorrupted) {
    return ends(`${file ?? place} cannot be used: ${failure.detail}`)
  }
  if (failure instanceof FileThere) return ends(`${file ?? place} is there already`)
  return ends(failure.message)
}
