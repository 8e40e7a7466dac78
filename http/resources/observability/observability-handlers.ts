/** Observability: `/livez`, `/readyz` and `/metrics` (protocol §6); and `/archive`. */
import { Effect } from "effect"
import { beginAudited, type BegunOperation } from "../../audit/index.ts"
import { callerOf, requireAdmin } from "../../auth/index.ts"
import { defineHandler, emptySource, type HandlerAnswer, type HandlerFailure, httpError, noStore,
  type ResourceHandler, type Service } from "../../pipeline/index.ts"

const text = (body: string, type = "text/plain; charset=utf-8"): HandlerAnswer => ({
  _tag: "Plain",
  status: 200,
  headers: [["Content-Type", type], ...noStore],
  body
})

const archiveAnswer = (source: AsyncIterable<Uint8Array>): HandlerAnswer => ({
  _tag: "Stream",
  status: 200,
  headers: [
    ["Content-Type", "application/octet-stream"],
    ["Content-Disposition", "attachment; filename=\"restante.archive\""],
    ...noStore
  ],
  lengthBytes: undefined,
  source,
  holdsPlace: true
})

/** Makes one archive at a time, since each reads the whole store. */
export const getArchive = (service: Service): ResourceHandler["handle"] => {
  let isRunning = false
  async function* source({ end }: BegunOperation): AsyncGenerator<Uint8Array> {
    // Two requests passed the check below at once: the later one fails before its first byte.
    if (isRunning) throw new Error("another archive is being made")
    isRunning = true
    let outcome: "done" | "unknown" = "unknown"
    try {
      yield* service.archive()
      outcome = "done"
    } finally {
      isRunning = false
      await Effect.runPromise(end(outcome))
    }
  }
  return Effect.fnUntraced(function*(call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const admin = yield* requireAdmin(service, call)
    if (isRunning) return yield* httpError("conflict", "an archive is being made at this node")
    if (call.request.method === "HEAD") return archiveAnswer(emptySource)
    const operation = {
      caller: callerOf(admin),
      action: "backup.take",
      target: "/archive"
    } as const
    const begun = yield* beginAudited(service, call, operation)
    return archiveAnswer(source(begun))
  })
}

export const getLive = () => () => Effect.succeed(text("live\n"))

export const getReady = (service: Service) => () =>
  service.ready.pipe(
    Effect.as(text("ready\n")),
    Effect.mapError((reason) => httpError("storage-unavailable", `not ready: ${reason}`))
  )

/** The Content-Type of Prometheus' text format. */
export const metricsType = "text/plain; version=0.0.4; charset=utf-8"

/** The metrics: for clients on this machine, and for admins (protocol §7). */
export const getMetrics = defineHandler(function*(service, call) {
  if (!service.clients.clientOf(call.request).isLocal) yield* requireAdmin(service, call)
  return text(service.metricsText(), metricsType)
})
