/** Requests to the service, recorded with the exact fields and content of their answers. */
import { request as send } from "node:http"

/** A request and its answer, as `lint_exchanges.py` reads them. */
export interface Exchange {
  readonly method: string
  readonly uri: string
  readonly requestFields: ReadonlyArray<readonly [name: string, value: string]>
  /** In base64. */
  readonly requestContent: string
  /** When it was sent, in seconds since 1970. */
  readonly at: number
  readonly status: number
  readonly phrase: string
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>
  /** In base64. */
  readonly content: string
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Sends no credentials. */
  readonly isAnonymous?: boolean
}

const requestWithinMs = 60_000

const pairsOf = (raw: ReadonlyArray<string>): Array<readonly [string, string]> =>
  Array.from({ length: raw.length / 2 }, (_, at) => [raw[2 * at] ?? "", raw[2 * at + 1] ?? ""])

/** Sends requests with a token, each on a connection of its own, and records them all. */
export class Recorder {
  readonly exchanges: Array<Exchange> = []
  private readonly origin: string
  private readonly token: string

  constructor(origin: string, token: string) {
    this.origin = origin
    this.token = token
  }

  send(method: string, target: string, options: RequestOptions = {}): Promise<Exchange> {
    const uri = new URL(target, this.origin)
    const { body = "", isAnonymous = false } = options
    const headers = {
      "User-Agent": "restante-suites",
      ...isAnonymous ? {} : { Authorization: `Bearer ${this.token}` },
      ...body === "" ? {} : { "Content-Type": "application/xml" },
      ...body === "" && method !== "POST" && method !== "PUT"
        ? {}
        : { "Content-Length": String(Buffer.byteLength(body)) },
      ...options.headers
    }
    const at = Date.now() / 1000
    return new Promise((resolve, reject) => {
      const sent = send(uri, { method, headers, agent: false, timeout: requestWithinMs })
      sent.once("error", reject)
      sent.once("timeout", () => sent.destroy(new Error(`${method} ${uri} takes too long`)))
      sent.once("response", (answer) => {
        const chunks: Array<Buffer> = []
        answer.on("data", (chunk: Buffer) => chunks.push(chunk))
        answer.once("error", reject)
        answer.once("end", () => {
          const exchange: Exchange = {
            method,
            uri: uri.href,
            requestFields: Object.entries(headers),
            requestContent: Buffer.from(body).toString("base64"),
            at,
            status: answer.statusCode ?? 0,
            phrase: answer.statusMessage ?? "",
            fields: pairsOf(answer.rawHeaders),
            content: Buffer.concat(chunks).toString("base64")
          }
          this.exchanges.push(exchange)
          resolve(exchange)
        })
      })
      sent.end(body)
    })
  }
}

/** The value of a field of an answer; empty without one. */
export const fieldOf = ({ fields }: Exchange, name: string): string =>
  fields.find(([one]) => one.toLowerCase() === name)?.[1] ?? ""
