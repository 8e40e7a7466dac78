/**
 * The pings port over NATS: a ping goes to `restante.pings.<name>`; one process subscribes to it.
 * Pings and answers are signed as all messages between nodes (`envelopes.ts`).
 */
import { createInbox, type NatsConnection } from "@nats-io/transport-node"
import { Effect, Layer } from "effect"
import { Pings, type PingsApi, PingUnanswered } from "../../ports/index.ts"
import { isNodeInbox, isNoResponders, Nats, nodeInboxPrefix } from "../connection/index.ts"
import type { EnvelopeAuthenticator } from "./envelope-authenticator.ts"
import { Envelopes, isFresh } from "./envelopes.ts"
import { ReceivedCodes } from "./foreign-envelopes.ts"
import { forgeryLog } from "./forgery-log.ts"

const subjectOf = (name: string): string => `restante.pings.${name}`

class NatsPings {
  private readonly nc: NatsConnection
  private readonly envelopes: Envelopes
  private readonly inbox = createInbox(nodeInboxPrefix)
  /** What to call with the answer to a ping; undefined: nobody has received it. */
  private readonly pending = new Map<string, (answer: string | undefined) => void>()
  private readonly received = new ReceivedCodes()
  private count = 0

  constructor(nc: NatsConnection, envelopes: Envelopes) {
    this.nc = nc
    this.envelopes = envelopes
    const tokenAt = this.inbox.length + 1
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, answer) => {
        if (error !== null) return
        const end = this.pending.get(answer.subject.slice(tokenAt))
        if (isNoResponders(answer)) return end?.(undefined)
        const envelope = envelopes.receive("answer", answer)
        if (envelope !== undefined) end?.(envelope.text)
      }
    })
  }

  send(name: string, text: string): Effect.Effect<string, PingUnanswered> {
    return Effect.callback((resume) => {
      const token = (this.count++).toString(36)
      const end = (answer: string | undefined): void => {
        this.pending.delete(token)
        resume(
          answer === undefined
            ? Effect.fail(new PingUnanswered({ name }))
            : Effect.succeed(answer)
        )
      }
      this.pending.set(token, end)
      try {
        this.envelopes.publish("ping", subjectOf(name), text, { reply: `${this.inbox}.${token}` })
      } catch {
        // The connection closes.
        end(undefined)
      }
      return Effect.sync(() => this.pending.delete(token))
    })
  }

  /** Answers the pings to a name; the result ends it. */
  listen(name: string, answer: (text: string) => string): () => void {
    const subscription = this.nc.subscribe(subjectOf(name), {
      callback: (error, ping) => {
        if (error !== null || ping.reply === undefined || !isNodeInbox(ping.reply)) return
        // A ping that somebody repeats does not prove that its sender runs.
        const envelope = this.envelopes.receive("ping", ping)
        if (envelope === undefined || !isFresh(envelope)) return
        if (this.received.has(envelope.code)) return
        this.received.add(envelope.code)
        try {
          this.envelopes.publish("answer", ping.reply, answer(envelope.text))
        } catch {
          // The connection closes: the ping is lost.
        }
      }
    })
    return () => {
      if (!this.nc.isClosed()) subscription.unsubscribe()
    }
  }
}

/** The pings over the connection, with signed messages. */
export const natsPings = (authenticator: EnvelopeAuthenticator): Layer.Layer<Pings, never, Nats> =>
  Layer.effect(
    Pings,
    Effect.gen(function*() {
      const { nc, writes } = yield* Nats
      const pings = new NatsPings(nc, new Envelopes(writes, authenticator, yield* forgeryLog))
      const api: PingsApi = {
        send: (name, text) => pings.send(name, text),
        listen: (name, answer) =>
          Effect.asVoid(Effect.acquireRelease(
            Effect.sync(() => pings.listen(name, answer)),
            (end) => Effect.sync(end)
          ))
      }
      return api
    })
  )
