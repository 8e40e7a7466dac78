/** Observability: `/livez`, `/readyz` and `/metrics` (protocol §6); and `/archive`. */
import { Effect } from "effect"
import { auditedStream, beginAudited } from "../../audit/index.ts"
import { callerOf, requireAdmin } from "../../auth/index.ts"
import { defineHandler, emptySource, type HandlerAnswer, type HandlerFailure, httpError, noStore,
  type ResourceHandler, type Service } from "../../pipeline/index.ts"

const text = (body: string, type = "text/plain; charset=utf-8"): HandlerAnswer => ({
  _tag: "Plain",
  status: 200,
  headers: [["Content-Type", type], ...noStore],
  body
})

const archiveAnswer = (
  source: AsyncIterable<Uint8Array>,
  ended: () => void
): HandlerAnswer => ({
  _tag: "Stream",
  status: 200,
  headers: [
    ["Content-Type", "application/octet-stream"],
    ["Content-Disposition", "attachment; filename=\"restante.archive\""],
    ...noStore
  ],
  lengthBytes: undefined,
  source,
  holdsPlace: true,
  ended
})

/** Makes one archive at a time, since each reads the whole store. */
export const getArchive = (service: Service): ResourceHandler["handle"] => {
  let isRunning = false
  const release = () => {
    isRunning = false
  }
  return Effect.fnUntraced(function*(call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const admin = yield* requireAdmin(service, call)
    if (isRunning) return yield* httpError("conflict", "an archive is being made at this node")
    if (call.request.method === "HEAD") return archiveAnswer(emptySource, () => {})
    // Before the entry in the audit log, so that two requests at once do not both begin.
    isRunning = true
    const operation = {
      caller: callerOf(admin),
      action: "backup.take",
      target: "/archive"
    } as const
    const begun = yield* Effect.onError(
      beginAudited(service, call, operation),
      () => Effect.sync(release)
    )
    const { ended, source } = auditedStream(begun, release, service.archive)
    return archiveAnswer(source, ended)
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
