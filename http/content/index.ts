/** The rows of content (protocol §1.1). */
import type { ResourceHandler } from "../call.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { deleteContent, postContent, putContent } from "./publish.ts"
import { getReceipt, getReceipts, postReceipt } from "./receipts.ts"
import { getContent } from "./serve.ts"

export { publishInline } from "./publish.ts"
export { sweepOrphans } from "./sweep.ts"

export const contentRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  { pattern: "/content", methods: { POST: { handle: postContent(service), body: "stream" } } },
  {
    pattern: "/content/{content}",
    methods: {
      GET: { handle: getContent(service) },
      POST: { handle: postReceipt(service) },
      PUT: { handle: putContent(service), body: "stream" },
      DELETE: { handle: deleteContent(service) }
    }
  },
  { pattern: "/content/{content}/receipts", methods: { GET: { handle: getReceipts(service) } } },
  {
    pattern: "/content/{content}/receipts/{receipt}",
    methods: { GET: { handle: getReceipt(service) } }
  }
]
