/**
 * An outgoing notification (A5, A6, A8). Each recipient advances by itself from waiting over retry
 * to an end; only a manual retry leaves an end. The number of attempts never decreases.
 */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

export type RecipientStatus = "waiting" | "retry" | "success" | "failed"

export interface RecipientShown {
  readonly status: RecipientStatus
  /** The number of all attempts. */
  readonly attempts: number
}

export type NotificationInput =
  | { readonly kind: "queue"; readonly recipients: number }
  | { readonly kind: "show" }
  /** Retries the failed recipients manually. */
  | { readonly kind: "retry" }
  | { readonly kind: "delete" }

export type NotificationOutput =
  | { readonly _tag: "Done" }
  /** In the order in which they were given. */
  | { readonly _tag: "Shown"; readonly recipients: ReadonlyArray<RecipientShown> }
  /** The resource does not exist (404) or was removed (410). */
  | { readonly _tag: "Gone" }

export type NotificationOperation = Operation<NotificationInput, NotificationOutput>

export interface NotificationState {
  readonly is: "absent" | "queued" | "deleted"
  /** The recipients in the last answer. */
  readonly recipients: ReadonlyArray<RecipientShown>
  /** Manual retries since then; each may have restarted any failed recipient. */
  readonly isRetried: boolean
}

const nexts: Readonly<Record<RecipientStatus, ReadonlyArray<RecipientStatus>>> = {
  waiting: ["waiting", "retry", "success", "failed"],
  retry: ["retry", "success", "failed"],
  success: ["success"],
  failed: ["failed"]
}

/** Whether a recipient can change from `before` to `after` between two answers. */
const goesForward = (
  before: RecipientShown,
  after: RecipientShown,
  isRetried: boolean
): boolean => {
  const isTriedAnew = isRetried && before.status !== "success"
  if (!isTriedAnew && !nexts[before.status].includes(after.status)) return false
  if (after.attempts < before.attempts) return false
  if (after.status === "waiting") return isTriedAnew || after.attempts === before.attempts
  if (after.attempts === 0) return false
  const isEnded = before.status === "success" || before.status === "failed"
  return isTriedAnew || !isEnded || after.attempts === before.attempts
}

const gone = (state: NotificationState, output: NotificationOutput | undefined) =>
  output === undefined || output._tag === "Gone" ? [state] : []

const inQueued = (
  state: NotificationState,
  input: NotificationInput,
  output: NotificationOutput | undefined
): ReadonlyArray<NotificationState> => {
  switch (input.kind) {
    case "queue":
      return []
    case "retry":
      return output === undefined || output._tag === "Done" ? [{ ...state, isRetried: true }] : []
    case "delete":
      return output === undefined || output._tag === "Done"
        ? [{ is: "deleted", recipients: [], isRetried: false }]
        : []
    case "show": {
      if (output === undefined) return [state]
      if (output._tag !== "Shown") return []
      const { recipients } = output
      const isPossible = recipients.length === state.recipients.length &&
        state.recipients.every((before, at) => {
          const after = recipients[at]
          return after !== undefined && goesForward(before, after, state.isRetried)
        })
      return isPossible ? [{ is: "queued", recipients, isRetried: false }] : []
    }
  }
}

export const notification: Model<NotificationState, NotificationInput, NotificationOutput> = {
  initial: { is: "absent", recipients: [], isRetried: false },
  keyOf: (state) => JSON.stringify(state),
  step: (state, input, output) => {
    if (state.is === "queued") return inQueued(state, input, output)
    if (state.is === "deleted" || input.kind !== "queue") return gone(state, output)
    if (output !== undefined && output._tag !== "Done") return []
    const recipients = Array.from(
      { length: input.recipients },
      (): RecipientShown => ({ status: "waiting", attempts: 0 })
    )
    return [{ is: "queued", recipients, isRetried: false }]
  }
}
