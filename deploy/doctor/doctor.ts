/** `restante doctor`: examines everything that a node needs. */
import { Effect } from "effect"
import { type LoadedSettings, settingsWith } from "../settings/index.ts"
import type { Finding } from "./finding.ts"
import { adminToken, baseUrl, clock, contentBaseUrl, dataFolder, memory, openFiles, outbound,
  platform, telemetry } from "./machine.ts"
import { contentOrigin, findService, settingsFindings } from "./running-service.ts"
import { natsServers, store } from "./stores.ts"

/**
 * Examines everything. It changes only what opening a store changes. `token`: of an admin of the
 * running service, where the settings have none.
 */
export const examine = Effect.fnUntraced(function*(
  loaded: LoadedSettings,
  token: string | undefined
): Effect.fn.Return<ReadonlyArray<Finding>> {
  const { settings } = loaded
  const { natsUrl } = settings
  const storage = yield* Effect.promise(() => dataFolder(settings))
  const running = yield* Effect.promise(() => findService(settings, token))
  const served = settingsWith(settings, running.settings ?? {})
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
    ...running.findings,
    baseUrl(settings, running.report),
    contentBaseUrl(served),
    adminToken(settings),
    outbound(served),
    telemetry(settings),
    ...settingsFindings(loaded, running),
    ...yield* Effect.promise(() => contentOrigin(served))
  ]
})
