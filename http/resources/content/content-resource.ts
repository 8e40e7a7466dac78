/** The operations of content and its receipts (A1, A3, A4). */
import { receiptDescriptionCharsMax } from "../../../actors/index.ts"
import { attributes, buttonRequestBody, bytesContent, dateTime, digits, documentRequestBody,
  emptyResponse, list, oneOf, pagingParameters, ref, type RequestBodyDescription,
  type ResponseHeader, rootElement, seeOtherResponse, slug, text, uri, viewResponse,
  webUri } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { getContents } from "./content-listing.ts"
import { getContent } from "./download.ts"
import { deleteContent, postContent, postRemoval, putContent } from "./publication.ts"
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
    ListedContent: rootElement(
      "content",
      attributes({
        href: uri,
        edit: {
          ...uri,
          description: "Where its owner changes and removes it, if CONTENT_BASE_URL is set"
        },
        type: text,
        length: digits,
        published: dateTime,
        modified: dateTime,
        owner: text,
        expires: {
          ...dateTime,
          description: "Content of a client without an account expires then at the earliest: " +
            "reads, and notifications that link to it, keep it longer"
        }
      }),
      ["href", "type", "length", "published", "modified"]
    ),
    Contents: rootElement("contents", {
      ...attributes({ href: uri, owner: text, "used-bytes": digits, "max-bytes": digits }),
      content: list(ref("ListedContent"))
    }, ["href", "content"]),
    NewReceipt: rootElement("receipt", {
      ...attributes({ status, mailbox: webUri }),
      description: { ...text, maxLength: receiptDescriptionCharsMax }
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
    "GET /content": {
      handle: getContents,
      isGuarded: true,
      id: "listContents",
      summary: "Lists the caller's content, newest first; for the role admin everybody's",
      needs: "account",
      scopes: ["read", "admin"],
      problems: ["forbidden"],
      query: {
        ...pagingParameters,
        owner: { description: "Only the content of this account.", schema: slug },
        anonymous: {
          description: "Only the content of clients without an account.",
          schema: oneOf("true")
        },
        order: { description: "The order by age.", schema: oneOf("newest", "oldest") }
      },
      responses: { 200: viewResponse("Contents", "A page of the listing") }
    },
    "POST /content": {
      handle: postContent,
      id: "publishContent",
      summary: "Publishes content",
      description: "Anybody may publish, unless the operator requires an account.",
      needs: "anyone",
      scopes: ["deposit", "send"],
      headers: ["Message-Password", "Content-Disposition"],
      body: bytes,
      problems: ["unprocessable", "quota-exceeded"],
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
      contentOrigin: "only",
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
      contentOrigin: "also",
      id: "sendReceipt",
      summary: "Reports the outcome of a message",
      needs: "message",
      scopes: ["read"],
      body: documentRequestBody("NewReceipt"),
      acceptPost,
      problems: ["quota-exceeded"],
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
      problems: ["quota-exceeded"],
      responses: { 204: emptyResponse("Replaced", ["ETag"]) }
    },
    "DELETE /content/{content}": {
      handle: deleteContent,
      id: "deleteContent",
      summary: "Removes the content, at the edit URI or by its owner",
      needs: "anyone",
      scopes: ["deposit", "send", "admin"]
    },
    "POST /content/{content}/removal": {
      handle: postRemoval,
      id: "deleteContentByForm",
      summary: "Removes the content, for the button of a page",
      needs: "anyone",
      scopes: ["deposit", "send", "admin"],
      isPassing: true,
      body: buttonRequestBody,
      responses: { 303: seeOtherResponse }
    },
    "GET /content/{content}/receipts": {
      handle: getReceipts,
      id: "listReceipts",
      summary: "Lists the receipts of the recipients, below the edit URI or for the owner",
      needs: "anyone",
      scopes: ["deposit", "send", "read"],
      problems: ["forbidden"],
      query: pagingParameters,
      responses: { 200: viewResponse("Receipts", "A page of the receipts, oldest first") }
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
