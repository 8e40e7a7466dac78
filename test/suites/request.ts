/** A request of the transport as an effect. */
import { Effect } from "effect"
import type { RequestFailure, TransportApi } from "../../runtime/ports/transport.ts"

type Request = Parameters<TransportApi["request"]>

export const requestOf = (
  transport: TransportApi,
  to: Request[0],
  text: string,
  deadlineMs: number,
  trace?: string
): Effect.Effect<string, RequestFailure> =>
  Effect.callback((resume) =>
    transport.request(
      to,
      text,
      deadlineMs,
      (failure, reply) =>
        resume(failure === undefined ? Effect.succeed(reply) : Effect.fail(failure)),
      trace
    )
  )
