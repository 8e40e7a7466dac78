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
  if (failure instanceof ArchiveCorrupted) {
    return failed(`${archive} cannot be used, ${failure.detail}`, "use another backup")
  }
  return failure instanceof FileExists
    ? failed(`${archive} already exists`, "give a new file")
    : failed(
      `the archive ${archive} or the store ${store} cannot be used, ${failure.message}`,
      "correct that, and repeat the command"
    )
}
