/**
 * The pings port: short requests between the processes of a cluster, which answer at once. Any ping
 * or answer may be lost, late or doubled. Nobody else can answer in the name of a process.
 */
import { Context, type Effect, Schema, type Scope } from "effect"

/** Nobody listens under the name, or the ping could not be sent. */
export class PingUnanswered extends Schema.TaggedError<PingUnanswered>()("PingUnanswered", {
  name: Schema.String
}) {}

/** Short requests between the processes of a cluster, as {@link Pings} provides them. */
export interface PingsApi {
  /** Sends a text to the process that listens under `name`; waits for its answer, without limit. */
  readonly send: (name: string, text: string) => Effect.Effect<string, PingUnanswered>
  /**
   * Answers what is sent to `name`, an unused name of `[A-Za-z0-9_=-]+`, until the scope closes.
   * `answer` must neither throw nor block.
   */
  readonly listen: (
    name: string,
    answer: (text: string) => string
  ) => Effect.Effect<void, never, Scope.Scope>
}

/** The port by which the nodes of a cluster notice that another one is silent. */
export class Pings extends Context.Service<Pings, PingsApi>()("restante/runtime/Pings") {}
