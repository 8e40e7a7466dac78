/** Requests of clients to nodes: asks, reads, and HTTP requests. */
import type { Tagged } from "../../runtime/index.ts"
import { type ClientAnswer, ClusterClient } from "../../runtime/testing/index.ts"
import type { SimulatedNode } from "./nodes.ts"
import type { WebAnswer, WebRequest } from "./web.ts"

/** A message of any kind of actor. */
export type AnyMessage = Tagged & { readonly [field: string]: unknown }

export type Answer<Reply> = ClientAnswer<Reply>

export class ClientRequest extends ClusterClient<SimulatedNode> {
  /** An HTTP request; a failure of the service leaves its outcome open. */
  http(at: number, request: WebRequest): Promise<Answer<WebAnswer>> {
    return this.send(at, (node, settle) =>
      node.request(request, (reply) => {
        const { status, text } = reply
        settle(
          status >= 500
            ? { _tag: "Unknown", why: `${request.method} ${status} ${text}` }
            : { _tag: "Answered", reply }
        )
      }))
  }
}
