/** What a node's user must be allowed to do beside storing. */
import { type NatsConnection, TimeoutError } from "@nats-io/transport-node"
import { Effect } from "effect"
import { StorageUnavailable } from "../../actor/index.ts"
import { permissionCheckAttemptMs, permissionCheckMs } from "../../limits.ts"
import { Nats } from "../connection/index.ts"

/** Below the actors' subjects, and none of them. */
const subject = () => `restante.rights.${crypto.randomUUID()}`

/** Answers itself once; a message that is lost with a connection, or late, is no refusal. */
const hear = async (nc: NatsConnection): Promise<void> => {
  const own = subject()
  const untilMs = performance.now() + permissionCheckMs
  const answered = async (): Promise<unknown> => {
    try {
      return await nc.request(own, "", { timeout: permissionCheckAttemptMs })
    } catch (error) {
      if (!(error instanceof TimeoutError) || performance.now() > untilMs) throw error
      return answered()
    }
  }
  let end = () => {}
  const denied = new Promise<never>((_, reject) => {
    const subscription = nc.subscribe(own, {
      callback: (error, message) => {
        if (error === null) message.respond()
        else reject(error)
      }
    })
    end = () => subscription.unsubscribe()
  })
  await Promise.race([denied, answered()]).finally(() => end())
}

/**
 * Fails with StorageUnavailable unless what is sent below `restante.` is taken there and answered:
 * a node that nobody can ask would own shards all the same.
 */
export const assertSubjectPermission: Effect.Effect<void, StorageUnavailable, Nats> = Effect
  .flatMap(
    Nats,
    ({ nc }) =>
      Effect.tryPromise({
        try: () => hear(nc),
        catch: (error) =>
          new StorageUnavailable({
            detail: `nodes cannot ask each other: ${
              error instanceof Error ? error.message : String(error)
            }`
          })
      })
  )
