/**
 * The requests to the collector. A batch that it does not take is repeated for a bounded time, then
 * counted and reported as done: Effect's exporter would otherwise stop for a minute, and drop
 * without a count what comes meanwhile.
 */
import { Effect, Schedule } from "effect"
import { type HttpBody, HttpClient, type HttpClientRequest, HttpClientResponse } from "effect/http"
import { collectorRetries, collectorRetryMs, collectorTimeoutMs } from "../limits.ts"

/** Why the collector did not take a batch, for people. */
interface ExportFailure {
  readonly reason: string
  readonly isTransient: boolean
}

/** The statuses after which a batch may be sent again (OTLP 1.9, OTLP/HTTP response). */
const transientStatuses = new Set([429, 502, 503, 504])

/** Messages of Node.js name an address at most, never a header. */
const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return "no connection"
  const code = "code" in cause ? String(cause.code) : cause.name
  return cause.message === "" ? code : cause.message
}

const failureOf = (status: number): ExportFailure => ({
  reason: `it answers ${status}`,
  isTransient: transientStatuses.has(status)
})

/** The exporter encodes into buffers that are not shared, which their type does not express. */
const bytesOf = (body: HttpBody.HttpBody): Uint8Array<ArrayBuffer> =>
  body._tag === "Uint8Array" ? body.body as Uint8Array<ArrayBuffer> : new Uint8Array()

/** Sends a batch once. A redirect is not followed: it could lead the headers elsewhere. */
const sendOnce = (
  url: URL,
  { body, headers }: HttpClientRequest.HttpClientRequest
): Effect.Effect<void, ExportFailure> => {
  // fetch counts the bytes itself.
  const sent = Object.fromEntries(
    Object.entries(headers).filter(([name]) => name !== "content-length")
  )
  const answered = Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, {
        method: "POST",
        headers: sent,
        body: bytesOf(body),
        redirect: "manual",
        signal
      })
      await response.body?.cancel().catch(() => {})
      return response.status
    },
    catch: (cause): ExportFailure => ({ reason: reasonOf(cause), isTransient: true })
  })
  return Effect.flatMap(
    answered,
    (status) => status >= 200 && status < 300 ? Effect.void : Effect.fail(failureOf(status))
  )
}

const noAnswer: ExportFailure = {
  reason: `it does not answer within ${collectorTimeoutMs / 1_000} s`,
  isTransient: true
}

const send = (
  url: URL,
  request: HttpClientRequest.HttpClientRequest
): Effect.Effect<void, ExportFailure> =>
  Effect.timeoutOrElse(
    Effect.retry(sendOnce(url, request), {
      schedule: Schedule.spaced(collectorRetryMs),
      times: collectorRetries,
      while: ({ isTransient }) => isTransient
    }),
    { duration: collectorTimeoutMs, orElse: () => Effect.fail(noAnswer) }
  )

/**
 * The client of one exporter. It logs when the collector stops taking `what`, and when it takes
 * them again. `settled` is called with each batch.
 */
export const collectorClient = (
  what: string,
  origin: string,
  settled: (body: HttpBody.HttpBody, isTaken: boolean) => void
): HttpClient.HttpClient => {
  let isFailing = false
  const failed = (reason: string): Effect.Effect<void> => {
    if (isFailing) return Effect.void
    isFailing = true
    return Effect.logWarning(
      `the collector at ${origin} does not take ${what}: ${reason}. They are dropped until it ` +
        "does; the service goes on. Check OTEL_EXPORTER_OTLP_ENDPOINT"
    )
  }
  const taken = (): Effect.Effect<void> => {
    if (!isFailing) return Effect.void
    isFailing = false
    return Effect.logInfo(`the collector at ${origin} takes ${what} again`)
  }
  return HttpClient.make((request, url) =>
    send(url, request).pipe(
      Effect.matchEffect({
        onFailure: ({ reason }) => {
          settled(request.body, false)
          return failed(reason)
        },
        onSuccess: () => {
          settled(request.body, true)
          return taken()
        }
      }),
      Effect.as(HttpClientResponse.fromWeb(request, new Response(null, { status: 204 })))
    )
  )
}
