/** Seeing inside: `/livez`, `/readyz` and `/metrics` (protocol §6). */
import { Effect } from "effect"
import type { Answer, Handler } from "../call.ts"
import { fail, type HeaderFields } from "../failures.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"

const noStore: HeaderFields = [["Cache-Control", "no-store"]]

const text = (body: string, type = "text/plain; charset=utf-8"): Answer => ({
  _tag: "Plain",
  status: 200,
  headers: [["Content-Type", type], ...noStore],
  body
})

export const insideRoutes = (service: Service): ReadonlyArray<Route<Handler>> => [
  { pattern: "/livez", methods: { GET: { handle: () => Effect.succeed(text("live\n")) } } },
  {
    pattern: "/readyz",
    methods: {
      GET: {
        handle: () =>
          service.ready.pipe(
            Effect.as(text("ready\n")),
            Effect.mapError((reason) => fail("storage-unavailable", `not ready: ${reason}`))
          )
      }
    }
  },
  {
    pattern: "/metrics",
    methods: {
      GET: {
        handle: () =>
          Effect.sync(() => text(service.metrics(), "text/plain; version=0.0.4; charset=utf-8"))
      }
    }
  }
]
