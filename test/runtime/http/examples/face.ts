import { expose, httpFace, unauthenticated } from "../../../../runtime/http/index.ts"
import { memory, startNode } from "../../../../runtime/main.ts"
import { counter } from "./counter.ts"

/** Who has which token: here each caller has the one counter of its name. */
const callers = new Map([["Bearer alices-token", "alice"], ["Bearer bobs-token", "bob"]])

export const node = await startNode({ actors: [counter], store: memory() })

export const handler = httpFace(node, {
  actors: [expose(counter, { commands: ["Add"], queries: ["Read"] })],
  authorize: (request, access) => {
    const caller = callers.get(request.headers.get("authorization") ?? "")
    if (caller === undefined) return unauthenticated("Bearer")
    return access._tag === "Document" || access.id === caller
  }
})
