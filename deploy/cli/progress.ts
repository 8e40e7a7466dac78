/** How a notification that is under way stands: one line on standard error. */
import { Effect } from "effect"
import { CommandFailed, exitCodes } from "../failure.ts"
import { follow, type OutgoingNotification, type OutgoingRecipient } from "../outgoing.ts"
import type { RemoteService } from "../remote.ts"
import { plain, some } from "./output.ts"

const tickMs = 1_000
/** Failed recipients that are named when all has ended. */
const namedMax = 20

const spanOf = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

const countOf = (
  { recipient }: OutgoingNotification,
  wanted: OutgoingRecipient["status"]
): number => recipient.filter(({ status }) => status === wanted).length

const nextMsOf = ({ recipient }: OutgoingNotification): number | undefined => {
  const times = recipient.flatMap(({ next, status }) =>
    next === undefined || status === "success" || status === "failed" ? [] : [Date.parse(next)]
  )
  return times.length === 0 ? undefined : Math.min(...times)
}

/** `3 of 5 delivered, 1 retrying, 1 failed · next attempt in 12 s`; counts of zero are left out. */
export const progressText = (seen: OutgoingNotification, nowMs: number): string => {
  const others = [
    ["waiting", countOf(seen, "waiting")],
    ["retrying", countOf(seen, "retry")],
    ["failed", countOf(seen, "failed")]
  ].map(([name, count]) => count === 0 ? "" : `, ${count} ${name}`).join("")
  const nextMs = nextMsOf(seen)
  const next = nextMs === undefined || nextMs <= nowMs
    ? ""
    : ` · next attempt in ${spanOf(nextMs - nowMs)}`
  return `${countOf(seen, "success")} of ${seen.recipient.length} delivered${others}${next}`
}

/** Where the line goes. */
export interface Screen {
  readonly write: (text: string) => void
  /** Whether a line can be written over. */
  readonly isTerminal: boolean
}

const unanswered = "the service does not answer; trying again"

/** Rewrites its line on a terminal; elsewhere it writes a line for each change. */
export class ProgressLine {
  private readonly screen: Screen
  private seen: OutgoingNotification | undefined
  private written = ""

  constructor(screen: Screen) {
    this.screen = screen
  }

  /** Undefined when the service does not tell. */
  show(seen: OutgoingNotification | undefined, nowMs: number): void {
    const text = seen === undefined ? unanswered : progressText(seen, nowMs)
    this.seen = seen
    // That time passes is no change.
    const change = seen === undefined ? text : `${text.split(" · ")[0]} ${nextMsOf(seen)}`
    if (this.screen.isTerminal) this.screen.write(`\r\x1b[K${text}`)
    else if (change !== this.written) this.screen.write(`${text}\n`)
    this.written = change
  }

  /** The next attempt comes nearer. */
  tick(nowMs: number): void {
    if (this.screen.isTerminal && this.seen !== undefined) this.show(this.seen, nowMs)
  }

  end(): void {
    if (this.screen.isTerminal && this.written !== "") this.screen.write("\n")
  }
}

const standardError: Screen = {
  write: (text) => {
    process.stderr.write(text)
  },
  isTerminal: process.stderr.isTTY
}

/**
 * Shows the progress of a notification until all its recipients have ended. Interrupted before, the
 * process ends with 1: nobody may take that for delivered.
 */
export const showProgress = (
  remote: RemoteService,
  path: string
): Effect.Effect<OutgoingNotification, CommandFailed> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      process.exitCode = exitCodes.failed
      const line = new ProgressLine(standardError)
      return { line, timer: setInterval(() => line.tick(Date.now()), tickMs) }
    }),
    ({ line }) => follow(remote, path, (seen) => line.show(seen, Date.now())),
    ({ line, timer }) =>
      Effect.sync(() => {
        clearInterval(timer)
        line.end()
      })
  ).pipe(
    Effect.tap(() =>
      Effect.sync(() => {
        process.exitCode = undefined
      })
    )
  )

/** Fails, naming them, when recipients of an ended notification have failed. */
export const expectDelivered = (
  { recipient }: OutgoingNotification
): Effect.Effect<void, CommandFailed> => {
  const lost = recipient.filter(({ status }) => status === "failed")
  if (lost.length === 0) return Effect.void
  const named = lost.slice(0, namedMax).map(({ href, problem = "failed" }) =>
    `${plain(href)}: ${plain(problem)}`
  )
  const more = lost.length > namedMax ? [`and ${lost.length - namedMax} more`] : []
  const first = `not delivered to ${some(lost.length, "recipient")} of ${recipient.length}:`
  return Effect.fail(
    new CommandFailed({
      message: [first, ...named, ...more].join("\n"),
      exitCode: exitCodes.failed
    })
  )
}
