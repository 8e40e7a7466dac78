/** `restante serve`: runs one node, tells the operator where, and what stops it. */
import { Effect } from "effect"
import type { ServerUnavailable } from "../http/server.ts"
import type { StorageFailure, StorageLocked } from "../runtime/index.ts"
import { CommandFailed, exitCodes } from "./failure.ts"
import { runNode, type Serving } from "./node.ts"
import type { Loaded } from "./settings.ts"

const banner = (version: string, dataDir: string, serving: Serving): string => {
  const { adminToken, baseUrl, host, port } = serving
  const lines = [`restante ${version} on ${host}:${port}, store in ${dataDir}`, `  ${baseUrl}/`]
  if (adminToken !== undefined) {
    lines.push(
      "",
      "This is the first start: the token of the account admin, shown only now:",
      `  ${adminToken}`
    )
  }
  return `${lines.join("\n")}\n`
}

/** What the operator is told, and the exit code, for each way in which a node cannot run. */
export const stopped = (
  dataDir: string,
  failure: StorageFailure | StorageLocked | ServerUnavailable
): CommandFailed => {
  const ends = (message: string, exitCode: CommandFailed["exitCode"]): CommandFailed =>
    new CommandFailed({ message, exitCode })
  switch (failure._tag) {
    case "StorageLocked": {
      const holder = failure.pid === undefined ? "another process" : `process ${failure.pid}`
      return ends(`${dataDir} is in use by ${holder}`, exitCodes.unavailable)
    }
    case "StorageDamaged":
      return ends(`${dataDir} is damaged: ${failure.detail}`, exitCodes.damaged)
    case "StorageFull":
      return ends(`${dataDir} has no room left: ${failure.detail}`, exitCodes.unavailable)
    case "StorageUnavailable":
      return ends(`${dataDir} cannot be used: ${failure.detail}`, exitCodes.unavailable)
    case "ServerUnavailable":
      return ends(
        failure.message,
        failure.reason === "NativeModule" ? exitCodes.configuration : exitCodes.unavailable
      )
  }
}

/** Serves until it is interrupted, then drains. */
export const serve = (
  { settings }: Loaded,
  version: string
): Effect.Effect<never, CommandFailed> =>
  runNode(settings, (serving) => {
    process.stdout.write(banner(version, settings.dataDir, serving))
  }).pipe(Effect.mapError((failure) => stopped(settings.dataDir, failure)))
