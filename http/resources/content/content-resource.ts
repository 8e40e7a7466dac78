/** The operations of content and its receipts (A1, A3, A4). */
import { attributes, bytesContent, dateTime, digits, documentRequestBody, emptyResponse, list,
  oneOf, ref, type RequestBodyDescription, type ResponseHeader, rootElement, text, uri,
  viewResponse, webUri } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { getContent } from "./download.ts"
import { deleteContent, postContent, putContent } from "./publication.ts"
import { acceptPost, getReceipt, getReceipts, postReceipt } from "./receipts.ts"

const status = oneOf("received", "retrieved", "problem")

/** Any bytes of any type, which no schema describes. */
const bytes: RequestBodyDescription = { content: bytesContent, required: false, kind: "stream" }

const validators: ReadonlyArray<ResponseHeader> = [
  "ETag",
  "Last-Modified",
  "Cache-Control",
  "Accept-Post"
]

const served: ReadonlyArray<ResponseHeader> = [
  ...validators,
  "Accept-Ranges",
  "Content-Disposition",
  "Content-Security-Policy"
]

export const contentResource: ResourceDefinition = {
  tag: "content",
  about: "The first part of a message: any bytes, at an unguessable URI.",
  schemas: {
    Content: rootElement(
      "content",
      attributes({ href: uri, type: text, length: digits }),
      ["href", "type", "length"]
    ),
    NewReceipt: rootElement("receipt", {
      ...attributes({ status, mailbox: webUri }),
      description: text
    }, ["status"]),
    Receipt: rootElement("receipt", {
      ...attributes({ href: uri, received: dateTime, status, mailbox: uri }),
      description: text
    }, ["href"]),
    Receipts: rootElement("receipts", {
      ...attributes({ href: uri }),
      receipt: list(ref("Receipt"))
    }, ["href", "receipt"])
  },
  operations: {
    "POST /content": {
      handle: postContent,
      id: "publishContent",
      summary: "Publishes content",
      description: "Anybody may publish, unless the operator requires an account.",
      needs: "anyone",
      scopes: ["deposit", "send"],
      headers: ["Message-Password", "Content-Disposition"],
      body: bytes,
      problems: ["unprocessable"],
      responses: {
        202: viewResponse("Content", "Stored; the link `edit` authorizes changes", [
          "Location",
          "Link",
          "Message-Password?"
        ])
      }
    },
    "GET /content/{content}": {
      handle: getContent,
      id: "getContent",
      summary: "Reads the content as it was published",
      needs: "message",
      scopes: ["read"],
      headers: [
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Range",
        "Range"
      ],
      problems: ["precondition-failed", "range-not-satisfiable"],
      responses: {
        200: { description: "The whole content", content: bytesContent, headers: served },
        206: {
          description: "The requested range",
          content: bytesContent,
          headers: [...served, "Content-Range"]
        },
        304: emptyResponse("The client has the current content", [
          ...validators,
          "Accept-Ranges"
        ])
      }
    },
    "POST /content/{content}": {
      handle: postReceipt,
      id: "sendReceipt",
      summary: "Reports the outcome of a message",
      needs: "message",
      scopes: ["read"],
      body: documentRequestBody("NewReceipt"),
      acceptPost,
      responses: { 202: viewResponse("Receipt", "Stored", ["Location"]) }
    },
    "PUT /content/{content}": {
      handle: putContent,
      id: "replaceContent",
      summary: "Replaces the content, at the edit URI or by its owner",
      needs: "anyone",
      scopes: ["deposit", "send"],
      headers: ["Content-Disposition"],
      body: bytes,
      responses: { 204: emptyResponse("Replaced", ["ETag"]) }
    },
    "DELETE /content/{content}": {
      handle: deleteContent,
      id: "deleteContent",
      summary: "Removes the content, at the edit URI or by its owner",
      needs: "anyone",
      scopes: ["deposit", "send", "admin"]
    },
    "GET /content/{content}/receipts": {
      handle: getReceipts,
      id: "listReceipts",
      summary: "Lists the receipts of the recipients, below the edit URI or for the owner",
      needs: "anyone",
      scopes: ["deposit", "send", "read"],
      problems: ["forbidden"],
      responses: { 200: viewResponse("Receipts", "All receipts, oldest first") }
    },
    "GET /content/{content}/receipts/{receipt}": {
      handle: getReceipt,
      id: "getReceipt",
      summary: "Reads one receipt",
      needs: "anyone",
      scopes: ["deposit", "send", "read"],
      problems: ["forbidden"],
      responses: { 200: viewResponse("Receipt", "The receipt") }
    }
  }
}
