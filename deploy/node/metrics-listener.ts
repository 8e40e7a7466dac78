/** The listener of METRICS_LISTEN: `/metrics` alone, for a network of the operator. */
import { Effect, type Scope } from "effect"
import { createServer, type Server } from "node:http"
import { documentHeaders, metricsType, ServerUnavailable } from "../../http/index.ts"
import type { ListenAddress } from "../settings/index.ts"

const makeServer = (metricsText: () => string): Server =>
  createServer((request, response) => {
    const [path] = (request.url ?? "").split("?")
    const isRead = request.method === "GET" || request.method === "HEAD"
    const status = path !== "/metrics" ? 404 : isRead ? 200 : 405
    const body = status === 200 ? metricsText() : `use GET /metrics, there is nothing else here\n`
    response.writeHead(status, {
      ...Object.fromEntries(documentHeaders),
      "Content-Type": status === 200 ? metricsType : "text/plain; charset=utf-8",
      "Cache-Control": "no-store",
      ...status === 405 ? { Allow: "GET, HEAD" } : {}
    })
    response.end(body)
  })

/** Serves the metrics at an address, if any, until the scope ends. Fails with ServerUnavailable. */
export const serveMetrics = (
  address: ListenAddress | undefined,
  metricsText: () => string
): Effect.Effect<void, ServerUnavailable, Scope.Scope> =>
  address === undefined ? Effect.void : Effect.acquireRelease(
    Effect.callback<Server, ServerUnavailable>((resume) => {
      const { host, port } = address
      const server = makeServer(metricsText)
      const failed = (cause: Error): void => {
        const detail =
          `METRICS_LISTEN: cannot listen on ${host}:${port}, ${cause.message}: give another address`
        resume(Effect.fail(new ServerUnavailable("Address", detail, cause)))
      }
      server.once("error", failed)
      server.listen(port, host, () => {
        server.off("error", failed)
        resume(Effect.succeed(server))
      })
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
