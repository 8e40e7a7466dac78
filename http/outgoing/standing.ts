/** How notifications stand, as the listing and the pages tell it. */
import type { NotificationStatus, RecipientState } from "../../actors/notification/protocol.ts"

/** RFC 3339 of a time in ms since the epoch. */
export const timeOf = (atMs: number): string => new Date(atMs).toISOString()

/** One notification of a listing. */
export interface ListedOutgoing {
  readonly id: string
  readonly status: NotificationStatus
  readonly atMs: number
  readonly recipients: ReadonlyArray<RecipientState>
}

/** The statuses that a listing can be filtered by. */
export const statuses: ReadonlyArray<NotificationStatus> = ["waiting", "sent", "failed"]
