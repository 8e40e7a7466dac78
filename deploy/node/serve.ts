/** `restante serve`: runs one node, tells the operator where, and what stops it. */
import { Effect } from "effect"
import type { ServerUnavailable } from "../../http/index.ts"
import { backendFailed, type BackendFailure } from "../backend/index.ts"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import { type LoadedSettings, storageLocation } from "../settings/index.ts"
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

/** The message and the exit code for each failure that ends a node. */
const stopped = (
  location: string,
  failure: BackendFailure | IssuerUnusable | ServerUnavailable
): CommandFailed => {
  const { _tag } = failure
  if (_tag !== "IssuerUnusable" && _tag !== "ServerUnavailable") {
    return backendFailed(location, failure)
  }
  const isConfiguration = _tag === "IssuerUnusable" || failure.reason === "NativeModule"
  return new CommandFailed({
    message: failure.message,
    exitCode: isConfiguration ? exitCodes.configuration : exitCodes.unavailable
  })
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
  ).pipe(Effect.mapError((failure) => stopped(storageLocation(settings), failure)))
