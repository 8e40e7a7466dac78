/** The operations of `/`, the problems, the static files and `/openapi.json`. */
import { attribute, attributes, cacheHeaders, digits, emptyResponse, fileOperation, list, object,
  type Operation, type OperationGroup, rootElement, type Schema, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"

/** The operation with If-Match and its 412. */
const conditional = (operation: Operation): Operation => ({
  ...operation,
  headers: ["If-Match", "If-None-Match"],
  problems: [...operation.problems ?? [], "precondition-failed"]
})

const document: Schema = {
  type: "object",
  properties: { openapi: { type: "string", pattern: "^3\\.1\\." } },
  required: ["openapi", "info", "paths"],
  additionalProperties: true,
  externalDocs: { url: "https://spec.openapis.org/oas/v3.1.0" }
}

export const homeOperations: OperationGroup = {
  tag: "service",
  about: "The service itself: where to begin, and the problems that it answers.",
  schemas: {
    Service: rootElement("service", {
      version: attribute(text),
      link: list(object(attributes({ rel: text, href: uri, title: text }), ["rel", "href"]))
    }, ["version", "link"]),
    ProblemTypes: rootElement("problem-types", {
      "problem-type": list(
        object(attributes({ href: uri, status: digits, title: text }), ["href", "status", "title"])
      )
    }, ["problem-type"]),
    ProblemType: rootElement(
      "problem-type",
      { status: digits, title: text, explanation: text },
      ["status", "title", "explanation"]
    )
  },
  operations: {
    "GET /": {
      id: "getService",
      summary: "The entry points of the service, and its home page",
      query: {
        mailbox: {
          description: "For a browser: the mailbox that the forms of the page are to try.",
          schema: text
        }
      },
      responses: { 200: viewResponse("Service", "Links to all that there is", ["Link"]) }
    },
    "GET /problems": {
      id: "listProblems",
      summary: "Every kind of problem that the service answers",
      responses: { 200: viewResponse("ProblemTypes", "All kinds") }
    },
    "GET /problems/{slug}": {
      id: "getProblem",
      summary: "What a kind of problem is, and what to do about it",
      responses: { 200: viewResponse("ProblemType", "The kind") }
    },
    "GET /openapi.json": conditional({
      id: "getOpenapi",
      summary: "This document",
      problems: ["not-acceptable"],
      responses: {
        200: {
          description: "OpenAPI 3.1",
          content: { "application/json": document, "application/vnd.oai.openapi+json": document },
          headers: [...cacheHeaders, "Vary"]
        },
        304: emptyResponse("It is as the client has it", ["ETag"])
      }
    }),
    "GET /style.css": conditional(
      fileOperation("getStyle", "The stylesheet of all pages", "text/css")
    ),
    "GET /page.js": fileOperation("getPageScript", "The script of all pages", "text/javascript"),
    "GET /live.js": fileOperation("getLiveScript", "The script of live pages", "text/javascript"),
    "GET /robots.txt": conditional(
      fileOperation("getRobots", "What robots leave alone", "text/plain")
    ),
    "GET /favicon.ico": conditional(
      fileOperation("getIcon", "The icon of all pages", "image/svg+xml")
    )
  }
}
