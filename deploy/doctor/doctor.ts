/** `restante doctor`: everything that a node needs, looked at before it is missed. */
import { Effect } from "effect"
import type { NodeSettings } from "../settings/index.ts"
import type { Finding } from "./finding.ts"
import { adminToken, baseUrl, clock, folder, memory, openFiles, outbound,
  platform } from "./machine.ts"
import { servers, service, store } from "./service.ts"

export type { Finding } from "./finding.ts"

/** Looks at everything; changes nothing but what opening a store changes. */
export const examine = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<ReadonlyArray<Finding>> {
  const { natsUrl } = settings
  const room = yield* Effect.promise(() => folder(settings))
  const canWrite = room.every(({ state }) => state !== "fail")
  return [
    platform(),
    openFiles(),
    yield* Effect.promise(memory),
    clock(Date.now()),
    ...room,
    ...natsUrl === undefined
      ? canWrite ? [yield* store(settings)] : []
      : yield* servers(settings, natsUrl),
    baseUrl(settings),
    adminToken(settings),
    outbound(settings),
    ...yield* Effect.promise(() => service(settings))
  ]
})
