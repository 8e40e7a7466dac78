/** Wrong passwords by client address, counted at all nodes together (protocol §1.1). */
import { Effect } from "effect"
import { throttleKind } from "../actors/index.ts"
import type { Message, Reply } from "../actors/throttle/protocol.ts"
import { address } from "../runtime/index.ts"
import { fail, type Failure } from "./failures.ts"
import { secretHash } from "./secrets.ts"
import { ask, type Service } from "./service.ts"

const tell = (
  service: Service,
  client: string,
  message: Message
): Effect.Effect<Reply, Failure> => {
  const id = secretHash(client)
  return ask<Reply>(service, address(throttleKind, id), message)
}

/** Fails with 429 and Retry-After when the address has had its wrong tries. */
export const mayTry = (service: Service, client: string): Effect.Effect<void, Failure> =>
  Effect.flatMap(tell(service, client, { _tag: "Look" }), ({ waitMs }) =>
    waitMs === 0
      ? Effect.void
      : Effect.fail(fail("too-many-requests", "too many wrong passwords from this address", [
        ["Retry-After", String(Math.ceil(waitMs / 1000))]
      ])))

/** Counts one wrong try. */
export const triedWrong = (service: Service, client: string): Effect.Effect<void, Failure> =>
  Effect.asVoid(tell(service, client, { _tag: "Wrong" }))
