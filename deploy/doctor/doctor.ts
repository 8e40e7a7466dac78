/** `restante doctor`: examines everything that a node needs. */
import { Effect } from "effect"
import type { NodeSettings } from "../settings/index.ts"
import type { Finding } from "./finding.ts"
import { adminToken, baseUrl, clock, contentBaseUrl, dataFolder, memory, openFiles, outbound,
  platform } from "./machine.ts"
import { contentOrigin, natsServers, service, store } from "./service.ts"

/** Examines everything. It changes only what opening a store changes. */
export const examine = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<ReadonlyArray<Finding>> {
  const { natsUrl } = settings
  const storage = yield* Effect.promise(() => dataFolder(settings))
  const canWrite = storage.every(({ state }) => state !== "fail")
  return [
    platform(),
    openFiles(),
    yield* Effect.promise(memory),
    clock(Date.now()),
    ...storage,
    ...natsUrl === undefined
      ? canWrite ? [yield* store(settings)] : []
      : yield* natsServers(settings, natsUrl),
    baseUrl(settings),
    contentBaseUrl(settings),
    adminToken(settings),
    outbound(settings),
    ...yield* Effect.promise(() => service(settings)),
    ...yield* Effect.promise(() => contentOrigin(settings))
  ]
})
