/** `restante serve`: runs one node, and prints its address or the reason why it stopped. */
import { Effect } from "effect"
import { setFlagsFromString } from "node:v8"
import type { FirstMailbox, ServerUnavailable } from "../../http/index.ts"
import { backendFailed, type BackendFailure } from "../backend/index.ts"
import { type CommandFailed, exitCodes, failedAs } from "../command-failure.ts"
import { heapGrowthPercent } from "../limits.ts"
import { adminTokenProblem, type LoadedSettings, natsProblem, natsWeakness,
  storageLocation } from "../settings/index.ts"
import type { IssuerUnusable } from "./issuer.ts"
import { runNode, type ServingNode } from "./node.ts"
import { warnOfOpenFolder } from "./private-folder.ts"

/**
 * Three lines to try, in the order of the README. Who has chosen the token keeps secrets out of the
 * output, which a log may collect: then no line has one.
 */
const firstMinute = (
  { href, sharedHref }: FirstMailbox,
  adminToken: string | undefined
): ReadonlyArray<string> => {
  const isChosen = adminToken === undefined
  // JSON, and in quotes: some shells expand a question mark.
  const read = `'${isChosen ? href : sharedHref}?format=json'`
  return [
    "",
    "Send something to the mailbox inbox, read it, and see it in a browser:",
    `  curl -d "hello" ${href}`,
    isChosen ? `  curl -u "admin:$ADMIN_TOKEN" ${read}` : `  curl ${read}`,
    `  ${isChosen ? href : sharedHref}`
  ]
}

const banner = (version: string, serving: ServingNode): string => {
  const { adminToken, baseUrl, engine, firstMailbox, host, location, node, port } = serving
  const storeText = node === undefined
    ? `${engine} store in ${location}`
    : `node ${node} of the cluster on ${location}`
  const lines = [`restante ${version} on ${host}:${port}, ${storeText}`, `  ${baseUrl}/`]
  if (adminToken !== undefined) {
    lines.push(
      "",
      "This is the first start: the token of the account admin, shown only now:",
      `  ${adminToken}`
    )
  }
  if (firstMailbox !== undefined) lines.push(...firstMinute(firstMailbox, adminToken))
  return `${lines.join("\n")}\n`
}

/** The message and the exit code for each failure that ends a node. */
const failureOf = (
  location: string,
  failure: BackendFailure | IssuerUnusable | ServerUnavailable
): CommandFailed => {
  const { _tag } = failure
  if (_tag !== "IssuerUnusable" && _tag !== "ServerUnavailable") {
    return backendFailed(location, failure)
  }
  const isConfiguration = _tag === "IssuerUnusable" || failure.reason === "NativeModule"
  return failedAs(
    failure.message,
    isConfiguration ? exitCodes.configuration : exitCodes.unavailable
  )
}

/** Warns if BASE_URL is not set in a cluster: the node's URIs then name its own machine only. */
const warnOfBaseUrl = ({ baseUrl, natsUrl }: LoadedSettings["settings"]): Effect.Effect<void> =>
  natsUrl === undefined || baseUrl !== undefined
    ? Effect.void
    : Effect.logWarning(
      "BASE_URL is not set: URIs begin with localhost and this node's port, which other " +
        "machines cannot reach. Set BASE_URL to the same address on every node"
    )

/** Warns of a connection to NATS that only NATS_INSECURE lets the node make. */
const warnOfNats = (settings: LoadedSettings["settings"]): Effect.Effect<void> => {
  const weakness = natsWeakness(settings)
  return weakness === undefined ? Effect.void : Effect.logWarning(`NATS_INSECURE=1: ${weakness}`)
}

/**
 * Lets V8 collect sooner. By default the heap may grow to four times what a collection has left, so
 * after a wave of clients one process kept 90 MB of their dead buffers and another none, by chance.
 * V8 reads this flag at each collection, so it works in a running process too.
 */
const boundHeapGrowth: Effect.Effect<void> = Effect.sync(() =>
  setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`)
)

/** Serves until it is interrupted, then drains. */
export const serve = (
  loaded: LoadedSettings,
  version: string
): Effect.Effect<never, CommandFailed> => {
  const { settings } = loaded
  const problem = adminTokenProblem(settings) ?? natsProblem(settings)
  if (problem !== undefined) return Effect.fail(failedAs(problem, exitCodes.configuration))
  return Effect.andThen(
    Effect.all([
      boundHeapGrowth,
      warnOfBaseUrl(settings),
      warnOfOpenFolder(settings.dataDir),
      warnOfNats(settings)
    ]),
    runNode(loaded, (serving) => {
      process.stdout.write(banner(version, serving))
    })
  ).pipe(Effect.mapError((failure) => failureOf(storageLocation(settings), failure)))
}
