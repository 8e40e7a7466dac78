/** The progress of a sent notification: one line on standard error. */
import { Effect } from "effect"
import type { NotificationProgress, RecipientStatus } from "../../client/index.ts"
import { type CommandFailed, failedAs } from "../command-failure.ts"
import { call, type ServiceLocation } from "./service/index.ts"
import { mustComplete, plain, plural, type Screen, standardError } from "./terminal.ts"

const tickMs = 1_000

/** Failed recipients that are listed at the end. */
const listedRecipientsMax = 20

const durationText = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

const nextAttemptMs = ({ recipients }: NotificationProgress): number | undefined => {
  const times = recipients.flatMap(({ next, status }) =>
    next === undefined || status === "success" || status === "failed" ? [] : [Date.parse(next)]
  )
  return times.length === 0 ? undefined : Math.min(...times)
}

/** `3 of 5 delivered, 1 retrying, 1 failed · next attempt in 12 s`; counts of zero are omitted. */
export const progressText = (progress: NotificationProgress, nowMs: number): string => {
  const { recipients } = progress
  const count = (status: RecipientStatus): number =>
    recipients.filter((recipient) => recipient.status === status).length
  const others = [
    ["waiting", count("waiting")],
    ["retrying", count("retry")],
    ["failed", count("failed")]
  ].map(([name, number]) => number === 0 ? "" : `, ${number} ${name}`).join("")
  const nextMs = nextAttemptMs(progress)
  const next = nextMs === undefined || nextMs <= nowMs
    ? ""
    : ` · next attempt in ${durationText(nextMs - nowMs)}`
  return `${count("success")} of ${recipients.length} delivered${others}${next}`
}

/** Overwrites its line on a terminal; elsewhere it writes a line for each change. */
export class ProgressLine {
  private readonly screen: Screen
  private progress: NotificationProgress | undefined
  private lastChange = ""

  constructor(screen: Screen) {
    this.screen = screen
  }

  /** Undefined while the service does not respond. */
  show(progress: NotificationProgress | undefined, nowMs: number): void {
    this.progress = progress
    const text = progress === undefined
      ? "the service does not respond; retrying"
      : progressText(progress, nowMs)
    // The time to the next attempt does not count as a change.
    const change = progress && `${text.split(" · ")[0]} ${nextAttemptMs(progress)}` || text
    if (this.screen.isTerminal) this.screen.write(`\r\x1b[K${text}`)
    else if (change !== this.lastChange) this.screen.write(`${text}\n`)
    this.lastChange = change
  }

  /** Updates the time to the next attempt. */
  tick(nowMs: number): void {
    if (this.screen.isTerminal && this.progress !== undefined) this.show(this.progress, nowMs)
  }

  end(): void {
    if (this.screen.isTerminal && this.lastChange !== "") this.screen.write("\n")
  }
}

/** Shows the progress until no attempt follows. A signal before that makes the exit code 1. */
export const showProgress = (
  service: ServiceLocation,
  path: string
): Effect.Effect<NotificationProgress, CommandFailed> =>
  mustComplete(Effect.acquireUseRelease(
    Effect.sync(() => {
      const line = new ProgressLine(standardError)
      return { line, timer: setInterval(() => line.tick(Date.now()), tickMs) }
    }),
    ({ line }) =>
      call(service, ({ outgoing }) =>
        outgoing.sent(path).wait({
          onChange: (progress) => line.show(progress, Date.now()),
          onConnectionLost: () => line.show(undefined, Date.now())
        })),
    ({ line, timer }) =>
      Effect.sync(() => {
        clearInterval(timer)
        line.end()
      })
  ))

/** Fails, and lists them, when recipients have failed. */
export const expectDelivered = (
  { recipients }: NotificationProgress
): Effect.Effect<void, CommandFailed> => {
  const undelivered = recipients.filter(({ status }) => status === "failed")
  if (undelivered.length === 0) return Effect.void
  const listed = undelivered.slice(0, listedRecipientsMax).map(({ href, problem = "failed" }) =>
    `${plain(href)}: ${plain(problem)}`
  )
  const others = undelivered.length - listed.length
  const first = `not delivered to ${
    plural(undelivered.length, "recipient")
  } of ${recipients.length}:`
  return Effect.fail(failedAs([
    first,
    ...listed,
    ...others > 0 ? [`and ${others} more`] : [],
    "correct what failed, then retry with restante outbox retry"
  ].join("\n")))
}
