/** Observability: `/livez`, `/readyz` and `/metrics` (protocol §6); and `/archive`. */
import { Effect } from "effect"
import { requireAdmin } from "../../auth/index.ts"
import { type Call, type HandlerAnswer, type HandlerFailure, httpError, noStore,
  type ResourceHandler, type Service } from "../../pipeline/index.ts"

const text = (body: string, type = "text/plain; charset=utf-8"): HandlerAnswer => ({
  _tag: "Plain",
  status: 200,
  headers: [["Content-Type", type], ...noStore],
  body
})

/** Makes one archive at a time, since each reads the whole store. */
class Archives {
  private readonly service: Service
  private isRunning = false

  constructor(service: Service) {
    this.service = service
  }

  private async *source(): AsyncGenerator<Uint8Array> {
    // Two requests passed the check in `get` at once: the later stream fails before its first byte.
    if (this.isRunning) throw new Error("another archive is being made")
    this.isRunning = true
    try {
      yield* this.service.archive()
    } finally {
      this.isRunning = false
    }
  }

  readonly get = Effect.fnUntraced({ self: this }, function*(
    call: Call
  ): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireAdmin(this.service, call)
    if (this.isRunning) return yield* httpError("conflict", "an archive is being made at this node")
    return {
      _tag: "Stream",
      status: 200,
      headers: [
        ["Content-Type", "application/octet-stream"],
        ["Content-Disposition", "attachment; filename=\"restante.archive\""],
        ...noStore
      ],
      lengthBytes: undefined,
      source: this.source()
    }
  })
}

export const getArchive = (service: Service): ResourceHandler["handle"] => new Archives(service).get

export const getLive = () => () => Effect.succeed(text("live\n"))

export const getReady = (service: Service) => () =>
  service.ready.pipe(
    Effect.as(text("ready\n")),
    Effect.mapError((reason) => httpError("storage-unavailable", `not ready: ${reason}`))
  )

export const getMetrics = (service: Service) => () =>
  Effect.sync(() => text(service.metricsText(), "text/plain; version=0.0.4; charset=utf-8"))
