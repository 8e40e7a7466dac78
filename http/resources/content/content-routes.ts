/** The routes of content and its receipts (protocol §1.1). */
import type { ResourceHandler, Route, Service } from "../../pipeline/index.ts"
import { getContent } from "./download.ts"
import { deleteContent, postContent, putContent } from "./publication.ts"
import { getReceipt, getReceipts, postReceipt } from "./receipts.ts"

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
