/** The shards that the nodes of a run own; an idle node owns all others. */
import { cabinetKind, mailboxKind, sessionKind } from "../../actors/index.ts"
import { address, shardOf } from "../../runtime/actor/address.ts"
import { crossings } from "./plan.ts"
import { notificationAt, notificationIdOf, notificationParts } from "./notifications.ts"

export const shardsInUse: ReadonlySet<number> = new Set([
  ...[0, 1].map((at) => shardOf(address(mailboxKind, `mailbox-${at}`))),
  ...[0, 1].map((at) => shardOf(address(sessionKind, `session-${at}`))),
  shardOf(address(cabinetKind, "cabinet-0")),
  ...Array.from(
    { length: notificationParts },
    (_, at) => shardOf(notificationAt(notificationIdOf(at)))
  )
])

/** The ids of all sessions of a run; those besides the first two are in these shards, too. */
export const sessionIds: ReadonlyArray<string> = Array.from({ length: 1_000 }, (_, n) => n)
  .map((n) => `session-${n}`)
  .filter((id) => shardsInUse.has(shardOf(address(sessionKind, id))))
  .slice(0, 2 + crossings.length)
