/** What a node's user must be allowed to do beside storing. */
import { Effect } from "effect"
import { StorageUnavailable } from "../errors.ts"
import { Nats } from "./connection.ts"
import { RIGHTS_MS } from "./limits.ts"

/** Below the actors' subjects, and none of them. */
const subject = () => `restante.rights.${crypto.randomUUID()}`

/**
 * Fails with StorageUnavailable unless what is sent below `restante.` is taken there and answered:
 * a node that nobody can ask would own shards all the same.
 */
export const assertHeard: Effect.Effect<void, StorageUnavailable, Nats> = Effect.flatMap(
  Nats,
  ({ nc }) =>
    Effect.tryPromise({
      try: async () => {
        const own = subject()
        const denied = new Promise<never>((_, reject) => {
          nc.subscribe(own, {
            max: 1,
            callback: (error, message) => {
              if (error === null) message.respond()
              else reject(error)
            }
          })
        })
        await Promise.race([denied, nc.request(own, "", { timeout: RIGHTS_MS })])
      },
      catch: (error) =>
        new StorageUnavailable({
          detail: `nodes cannot ask each other: ${
            error instanceof Error ? error.message : String(error)
          }`
        })
    })
)
