/** Answers that wait for changes of an actor: long polls (RFC 7240 `wait`) and event streams. */
import { Effect } from "effect"
import type { Address, Refusal } from "../../runtime/index.ts"
import { longPollSecondsMax } from "../limits.ts"
import { eventHeaders, type EventStream, eventText, type ReplyHeaders } from "../wire/index.ts"
import { type Call, emptySource, type HandlerAnswer } from "./call.ts"
import { type HandlerFailure, toHttpError, tooManyOpen } from "./http-error.ts"
import type { Service } from "./service.ts"

/** The bounded seconds of `Prefer: wait=…`; undefined without it. */
export const preferredWaitSeconds = (call: Call): number | undefined => {
  const field = call.request.headers.get("prefer")
  const seconds = field === undefined
    ? undefined
    : /(?:^|,)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)/i.exec(field)?.[1]
  return seconds === undefined ? undefined : Math.min(Number(seconds), longPollSecondsMax)
}

/** Waits for the next change of an actor, until the client leaves or the server drains. */
class ChangeWaiter {
  private readonly unwatch: () => void
  private ended = false
  private changed = false
  private wake: (() => void) | undefined

  constructor({ system }: Service, about: Address) {
    this.unwatch = system.watch(about, () => {
      this.changed = true
      this.wake?.()
    })
  }

  /** Whether the client left or the server drains. */
  get over(): boolean {
    return this.ended
  }

  readonly end = (): void => {
    this.ended = true
    this.wake?.()
  }

  /** Waits for the next change since the last wait, at most `atMostMs`; not at all when over. */
  next(atMostMs: number): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const done = (): void => {
        clearTimeout(timer)
        this.wake = undefined
        this.changed = false
        resume(Effect.void)
      }
      const timer = setTimeout(done, atMostMs)
      if (this.changed || this.ended) done()
      else this.wake = done
    })
  }

  close(): void {
    this.unwatch()
  }
}

/** What an answer that stays open shows. */
export interface LiveSource {
  readonly to: Address
  /** Its URI. */
  readonly href: string
  /**
   * Checks the credentials and rights of the client as its request did. It fails after their
   * revocation or expiry.
   */
  readonly mayRead: Effect.Effect<unknown, HandlerFailure>
}

/** The checks of a client whose answer stays open. The request itself was the first one. */
interface ClientChecks {
  readonly check: Effect.Effect<void, HandlerFailure>
  /** Checks it at most once in the time for it. */
  readonly recheck: Effect.Effect<void, HandlerFailure>
}

const checksOf = ({ openAnswers }: Service, { mayRead }: LiveSource): ClientChecks => {
  let checkedMs = performance.now()
  const check = Effect.suspend(() => {
    checkedMs = performance.now()
    return Effect.asVoid(mayRead)
  })
  const isRecent = () => performance.now() - checkedMs < openAnswers.recheckMs
  return { check, recheck: Effect.suspend(() => isRecent() ? Effect.void : check) }
}

/**
 * A long poll: reads at once and after each change, until `isAnswer` accepts the result, the time
 * is over, the client leaves or the server drains. Fails if too many answers are open, and when the
 * client may no longer read.
 */
export const longPoll = <A>(
  service: Service,
  { exchange, request }: Call,
  watched: LiveSource,
  waitSeconds: number,
  read: Effect.Effect<A, HandlerFailure>,
  isAnswer: (result: A) => boolean
): Effect.Effect<A, HandlerFailure> =>
  Effect.acquireUseRelease(
    Effect.suspend(() => {
      const place = service.openAnswers.take(request)
      if (place._tag !== "Taken") return Effect.fail(tooManyOpen(place))
      const waiter = new ChangeWaiter(service, watched.to)
      exchange.onAbort(waiter.end)
      return Effect.succeed({ waiter, undrain: exchange.onDrain(waiter.end), place })
    }),
    Effect.fnUntraced(function*({ waiter }): Effect.fn.Return<A, HandlerFailure> {
      const endMs = performance.now() + waitSeconds * 1000
      const { recheck } = checksOf(service, watched)
      for (;;) {
        yield* recheck
        const result = yield* read
        const leftMs = endMs - performance.now()
        if (isAnswer(result) || leftMs <= 0 || waiter.over) return result
        yield* waiter.next(Math.min(leftMs, service.openAnswers.recheckMs))
      }
    }),
    ({ place, undrain, waiter }) =>
      Effect.sync(() => {
        place.release()
        undrain()
        waiter.close()
      })
  )

/** Header fields of an answer to a long poll. */
export const longPollHeaders = (waitSeconds: number): ReplyHeaders => [
  ["Preference-Applied", `wait=${waitSeconds}`],
  ["Vary", "Prefer"]
]

export const eventStreamType = "text/event-stream"

/** How a stream is sent to its client. */
export interface StreamPace {
  /** Checks the client, if its last check is not recent; to run before each event. */
  readonly recheck: Effect.Effect<void, HandlerFailure>
  /**
   * Waits until the client has received what was sent. It checks the client meanwhile, and after a
   * wait before anything more is sent, however recent the last check is.
   */
  readonly awaitReader: Effect.Effect<void, HandlerFailure>
}

const paceOf = (
  { openAnswers }: Service,
  events: EventStream,
  { check, recheck }: ClientChecks
): StreamPace => ({
  recheck,
  awaitReader: Effect.gen(function*(): Effect.fn.Return<void, HandlerFailure> {
    while (events.open && !events.isFlowing) {
      yield* Effect.promise(() => events.writable(openAnswers.recheckMs))
      if (events.open) yield* check
    }
  })
})

/** Reports that what the stream shows was removed, if the check of its client has found that. */
const reportGone = (events: EventStream, failure: HandlerFailure, href: string): void => {
  const isGone = toHttpError(failure).problem.status === 410
  if (isGone && events.isFlowing) events.send(eventText({ event: "gone", data: href }))
}

/**
 * A stream of server-sent events about an actor. `sendNew` sends what is new, at the pace of the
 * client: at once, and after each hint of a change. When it or a check of the client fails, the
 * stream ends; the client reconnects and gets the failure as an answer.
 */
export const eventStreamAnswer = (
  service: Service,
  { request }: Call,
  watched: LiveSource,
  headers: ReplyHeaders,
  sendNew: (
    events: EventStream,
    pace: StreamPace
  ) => Effect.Effect<void, HandlerFailure>
): HandlerAnswer => {
  if (request.method === "HEAD") {
    const all = [...eventHeaders, ...headers]
    return {
      _tag: "Stream",
      status: 200,
      headers: all,
      lengthBytes: undefined,
      source: emptySource
    }
  }
  const follow = Effect.fnUntraced(function*(events: EventStream, waiter: ChangeWaiter) {
    const pace = paceOf(service, events, checksOf(service, watched))
    while (events.open) {
      yield* pace.recheck
      yield* sendNew(events, pace)
      yield* waiter.next(service.openAnswers.recheckMs)
    }
  })
  return {
    _tag: "Events",
    headers,
    start: (events) => {
      const waiter = new ChangeWaiter(service, watched.to)
      events.onClose(() => {
        waiter.end()
        waiter.close()
      })
      const following = Effect.tapError(
        follow(events, waiter),
        (failure) => Effect.sync(() => reportGone(events, failure, watched.href))
      )
      Effect.runFork(following).addObserver((exit) => {
        if (exit._tag === "Success") return
        // What waits for a client that may not read must not keep its memory and its place.
        if (events.isFlowing) events.close()
        else events.cut()
      })
    }
  }
}

/** Ends a stream that its resource refuses; the event `gone` reports that it was removed. */
export const endRefusedStream = (
  events: EventStream,
  { reason }: Refusal,
  href: string
): void => {
  if (reason === "Gone") events.send(eventText({ event: "gone", data: href }))
  events.close()
}
