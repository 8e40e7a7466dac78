/** The message for the operator when a command on archives fails. */
import { backendFailed, isBackendFailure } from "../backend/index.ts"
import { CommandFailed, failed } from "../command-failure.ts"
import { FileExists } from "./file.ts"
import { ArchiveCorrupted } from "./format.ts"
import type { ArchiveFailure } from "./stores.ts"

/** The failure of a command on the store at `store` and the archive `file`. */
export const archiveFailed = (
  store: string,
  file: string | undefined,
  failure: ArchiveFailure
): CommandFailed => {
  if (failure instanceof CommandFailed) return failure
  if (isBackendFailure(failure)) return backendFailed(store, failure)
  const archive = file ?? store
  const message = failure instanceof ArchiveCorrupted
    ? `${archive} cannot be used: ${failure.detail}`
    : failure instanceof FileExists
    ? `${archive} already exists: give a new file`
    : failure.message
  return failed(message)
}
