/** `restante serve`: runs one node, tells the operator where, and what stops it. */
import { Effect } from "effect"
import type { ServerUnavailable } from "../../http/index.ts"
import { type BackendFailure, differing, missing, type NodeUnnamed,
  placeOf } from "../backend/index.ts"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import type { LoadedSettings } from "../settings/index.ts"
import type { IssuerUnusable } from "./issuer.ts"
import { runNode, type ServingNode } from "./node.ts"

const banner = (version: string, serving: ServingNode): string => {
  const { adminToken, baseUrl, engine, host, node, place, port } = serving
  const kept = node === undefined
    ? `${engine} store in ${place}`
    : `node ${node} of the cluster on ${place}`
  const lines = [`restante ${version} on ${host}:${port}, ${kept}`, `  ${baseUrl}/`]
  if (adminToken !== undefined) {
    lines.push(
      "",
      "This is the first start: the token of the account admin, shown only now:",
      `  ${adminToken}`
    )
  }
  return `${lines.join("\n")}\n`
}

/**
 * What the operator is told, and the exit code, for each way in which a node cannot run. `place` is
 * where it keeps everything.
 */
export const stopped = (
  place: string,
  failure: BackendFailure | NodeUnnamed | IssuerUnusable | ServerUnavailable
): CommandFailed => {
  const ends = (message: string, exitCode: CommandFailed["exitCode"]): CommandFailed =>
    new CommandFailed({ message, exitCode })
  switch (failure._tag) {
    case "StorageLocked": {
      const holder = failure.pid === undefined ? "another process" : `process ${failure.pid}`
      return ends(`${place} is in use by ${holder}`, exitCodes.unavailable)
    }
    case "StorageCorrupted":
      return ends(`${place} is damaged: ${failure.detail}`, exitCodes.damaged)
    case "StorageFull":
      return ends(`${place} has no room left: ${failure.detail}`, exitCodes.unavailable)
    case "StorageUnavailable":
      return ends(`${place} cannot be used: ${failure.detail}`, exitCodes.unavailable)
    case "EngineDiffers":
      return ends(differing(failure), exitCodes.configuration)
    case "EngineMissing":
      return ends(missing(place, failure), exitCodes.configuration)
    case "NatsTooOld":
      return ends(
        `${place} is version ${failure.found}; ${failure.wanted} or newer is needed`,
        exitCodes.unavailable
      )
    case "BucketsDiffer":
      return ends(
        `${place} was set up with ${failure.found}, this node with ${failure.wanted}: ` +
          "CLUSTER_BUCKETS stays as it was at the first start",
        exitCodes.unavailable
      )
    case "NodeNameTaken":
      return ends(
        `another process is the node ${failure.node} of the cluster on ${place}: ` +
          "each needs a NODE_ID, or a data directory, of its own",
        exitCodes.unavailable
      )
    case "NodeUnnamed":
      return ends(
        `${failure.file} cannot be used for this node's name: ${failure.detail}`,
        exitCodes.unavailable
      )
    case "IssuerUnusable":
      return ends(failure.message, exitCodes.configuration)
    case "ServerUnavailable":
      return ends(
        failure.message,
        failure.reason === "NativeModule" ? exitCodes.configuration : exitCodes.unavailable
      )
  }
}

/** URIs that a node of a cluster gives out without it lead to this machine only. */
const warnOfBaseUrl = ({ baseUrl, natsUrl }: LoadedSettings["settings"]): Effect.Effect<void> =>
  natsUrl === undefined || baseUrl !== undefined
    ? Effect.void
    : Effect.logWarning(
      "BASE_URL is not set: URIs begin with this node's own port on localhost, and not " +
        "with what the other nodes' do"
    )

/** Serves until it is interrupted, then drains. */
export const serve = (
  { settings }: LoadedSettings,
  version: string
): Effect.Effect<never, CommandFailed> =>
  Effect.andThen(
    warnOfBaseUrl(settings),
    runNode(settings, (serving) => {
      process.stdout.write(banner(version, serving))
    })
  ).pipe(Effect.mapError((failure) => stopped(placeOf(settings), failure)))
