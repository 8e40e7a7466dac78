/** The memory of an idempotency key bound to the runtime. */
import { Effect } from "effect"
import type { Behavior, Tagged } from "../../runtime/index.ts"
import { idempotencyKind } from "../mailbox/index.ts"
import { codecsOf } from "../schemas.ts"
import { idempotencyTable } from "./decide.ts"
import { IdempotencyMessage, type IdempotencyReply, IdempotencyState } from "./protocol.ts"

/** The behavior of idempotency keys. */
export const idempotency: Behavior<IdempotencyState, IdempotencyMessage, IdempotencyReply, Tagged> =
  {
    kind: idempotencyKind,
    initial: { _tag: "Absent" },
    table: idempotencyTable,
    ...codecsOf(IdempotencyState, IdempotencyMessage),
    perform: () => Effect.void
  }
