/** Requests to a Docker daemon: HTTP over its socket. */
import { request, type RequestOptions } from "node:http"
import { parseUrl } from "../../actors/index.ts"

const answeredWithinMs = 30_000

export interface Answered {
  readonly status: number
  readonly text: string
}

/** How to connect to a daemon; undefined for neither a socket nor plain TCP. */
const wayTo = (host: string): RequestOptions | undefined => {
  if (host.startsWith("unix://")) return { socketPath: host.slice("unix://".length) }
  const url = parseUrl(host)
  if (url?.protocol !== "tcp:" && url?.protocol !== "http:") return undefined
  return { host: url.hostname, port: url.port }
}

/** Sends a request to the daemon at `host`, in the form of DOCKER_HOST. Fails without an answer. */
export const ask = (
  host: string,
  method: "GET" | "DELETE",
  path: string,
  withinMs = answeredWithinMs
): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const way = wayTo(host)
    if (way === undefined) throw new Error(`no way to a Docker at ${host}`)
    const signal = AbortSignal.timeout(withinMs)
    const asking = request({ ...way, method, path, signal }, (answer) => {
      const parts: Array<Buffer> = []
      answer.on("data", (part: Buffer) => parts.push(part))
      answer.on("error", reject)
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }))
    })
    asking.on("error", reject)
    asking.end()
  })
