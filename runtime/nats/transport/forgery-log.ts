/** What a node logs of messages that are not signed with a key of its cluster. */
import { Effect } from "effect"
import { forgeryLogMs } from "../../limits.ts"

/** Logs that somebody sends messages without the cluster's key, once in `forgeryLogMs`. */
export const forgeryLog: Effect.Effect<(subject: string) => void> = Effect.map(
  Effect.context<never>(),
  (context) => {
    const run = Effect.runForkWith(context)
    let loggedMs = Number.NEGATIVE_INFINITY
    return (subject) => {
      const nowMs = performance.now()
      if (nowMs - loggedMs < forgeryLogMs) return
      loggedMs = nowMs
      run(Effect.logWarning(
        `NATS: a message for ${subject} was refused, since it is not signed with a key of this ` +
          "cluster: check who may publish there, and that all nodes have the same SECRET_KEY_FILE"
      ))
    }
  }
)
