/** What content and its receipts take and answer (A1, A3, A4). */
import { attributes, dateTime, digits, documentRequestBody, emptyResponse, list, oneOf,
  type OperationGroup, ref, type RequestBodyDescription, type ResponseHeader, rootElement, text,
  uri, viewResponse } from "../../formats/openapi/index.ts"

const status = oneOf("received", "retrieved", "problem")

/** Any bytes of any type; a schema has nothing to say of them. */
const bytes: RequestBodyDescription = { content: { "*/*": {} }, required: false, kind: "stream" }

const validators: ReadonlyArray<ResponseHeader> = ["ETag", "Last-Modified", "Cache-Control"]

const served: ReadonlyArray<ResponseHeader> = [
  ...validators,
  "Accept-Ranges",
  "Content-Disposition",
  "Content-Security-Policy"
]

export const contentOperations: OperationGroup = {
  tag: "content",
  about: "The first part of a message: any bytes, at an unguessable URI.",
  schemas: {
    Content: rootElement(
      "content",
      attributes({ href: uri, type: text, length: digits }),
      ["href", "type", "length"]
    ),
    NewReceipt: rootElement("receipt", {
      ...attributes({ status, mailbox: uri }),
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
      id: "publishContent",
      summary: "Publishes content (A1)",
      description: "Anybody may, unless the operator asks for an account.",
      needs: "anyone",
      headers: ["Message-Password", "Content-Disposition"],
      body: bytes,
      problems: ["unauthenticated", "unprocessable"],
      responses: {
        202: viewResponse("Content", "Stored. The link `edit` is for who may change it", [
          "Location",
          "Link",
          "Message-Password?"
        ])
      }
    },
    "GET /content/{content}": {
      id: "getContent",
      summary: "The content as it was published (A3)",
      needs: "message",
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
        200: { description: "All of it", content: { "*/*": {} }, headers: served },
        206: {
          description: "The part that was asked for",
          content: { "*/*": {} },
          headers: [...served, "Content-Range"]
        },
        304: emptyResponse("It is as the client has it", validators)
      }
    },
    "POST /content/{content}": {
      id: "sendReceipt",
      summary: "Reports the outcome of the message (A4)",
      needs: "message",
      body: documentRequestBody("NewReceipt"),
      responses: { 202: viewResponse("Receipt", "Taken", ["Location"]) }
    },
    "PUT /content/{content}": {
      id: "replaceContent",
      summary: "Replaces it, at the edit URI or by its owner",
      needs: "anyone",
      headers: ["Content-Disposition"],
      body: bytes,
      problems: ["unauthenticated", "gone", "too-many-requests"],
      responses: { 204: emptyResponse("It is replaced", ["ETag"]) }
    },
    "DELETE /content/{content}": {
      id: "deleteContent",
      summary: "Removes it, at the edit URI or by its owner",
      needs: "anyone",
      problems: ["unauthenticated", "gone", "too-many-requests"],
      responses: { 204: emptyResponse("It is removed") }
    },
    "GET /content/{content}/receipts": {
      id: "listReceipts",
      summary: "What its recipients report, below the edit URI or for its owner",
      needs: "anyone",
      problems: ["unauthenticated", "gone", "forbidden"],
      responses: { 200: viewResponse("Receipts", "All of them, oldest first") }
    },
    "GET /content/{content}/receipts/{receipt}": {
      id: "getReceipt",
      summary: "One receipt",
      needs: "anyone",
      problems: ["unauthenticated", "gone", "forbidden"],
      responses: { 200: viewResponse("Receipt", "The receipt") }
    }
  }
}
