/** Whether the user of a node may publish and subscribe below `restante.`. */
import { type NatsConnection, TimeoutError } from "@nats-io/transport-node"
import { Effect } from "effect"
import { StorageUnavailable } from "../../actor/index.ts"
import { permissionCheckAttemptMs, permissionCheckMs } from "../../limits.ts"
import { Nats } from "../connection/index.ts"

/**
 * Sends this node a request, and repeats it: a lost or late message does not prove a missing
 * permission.
 */
const requestOwnAnswer = async (nc: NatsConnection): Promise<void> => {
  // No actor has a subject of three parts.
  const subject = `restante.rights.${crypto.randomUUID()}`
  const untilMs = performance.now() + permissionCheckMs
  const request = async (): Promise<unknown> => {
    try {
      return await nc.request(subject, "", { timeout: permissionCheckAttemptMs })
    } catch (error) {
      if (!(error instanceof TimeoutError) || performance.now() > untilMs) throw error
      return request()
    }
  }
  let unsubscribe = () => {}
  const denied = new Promise<never>((_, reject) => {
    const subscription = nc.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) message.respond()
        else reject(error)
      }
    })
    unsubscribe = () => subscription.unsubscribe()
  })
  await Promise.race([denied, request()]).finally(() => unsubscribe())
}

/**
 * Fails with StorageUnavailable unless this node can answer a message below `restante.`. Without
 * the permission the node would own shards, and no other node could reach them.
 */
export const assertSubjectPermission: Effect.Effect<void, StorageUnavailable, Nats> = Effect
  .flatMap(Nats, ({ nc }) =>
    Effect.tryPromise({
      try: () => requestOwnAnswer(nc),
      catch: (error) =>
        new StorageUnavailable({
          detail: `nodes cannot reach each other over NATS: ${
            error instanceof Error ? error.message : String(error)
          }; let the user publish and subscribe to restante.> and _INBOX.>`
        })
    }))
