/** Reading a resource of another service once, for whoever cannot wait for a later attempt. */
import { Effect } from "effect"
import type { Outbound } from "./protocol.ts"

/** What was read. */
export interface Read {
  readonly type: string
  readonly bytes: Uint8Array
}

/** GET, whole, at most `bytesMax` bytes; fails with what was wrong, for people. */
export const readerOf =
  (outbound: Pick<Outbound, "get">) =>
  (uri: string, accept: string, bytesMax: number): Effect.Effect<Read, string> =>
    Effect.flatMap(outbound.get({ uri, headers: { accept }, bytesMax }), (outcome) => {
      switch (outcome._tag) {
        case "Fetched":
          return Effect.succeed({ type: outcome.fetched.type, bytes: outcome.fetched.bytes })
        case "Deferred":
          return Effect.fail("the other service is not asked just now: try again later")
        case "Refused":
        case "Faulted":
          return Effect.fail(outcome.problem)
      }
    })
