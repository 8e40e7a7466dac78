/** What `/`, the problems, the fixed files and `/openapi.json` take and answer. */
import { type Area, attribute, attributes, digits, file, kept, list, nothing, object,
  type Operation, root, type Schema, text, uri, view } from "../../formats/openapi/index.ts"

/** The same with If-Match. */
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

export const homeOperations: Area = {
  tag: "service",
  about: "The service itself: where to begin, and the problems that it answers.",
  schemas: {
    Service: root("service", {
      version: attribute(text),
      link: list(object(attributes({ rel: text, href: uri, title: text }), ["rel", "href"]))
    }, ["version", "link"]),
    ProblemTypes: root("problem-types", {
      "problem-type": list(
        object(attributes({ href: uri, status: digits, title: text }), ["href", "status", "title"])
      )
    }, ["problem-type"]),
    ProblemType: root(
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
      answers: { 200: view("Service", "Links to all that there is", ["Link"]) }
    },
    "GET /problems": {
      id: "listProblems",
      summary: "Every kind of problem that the service answers",
      answers: { 200: view("ProblemTypes", "All kinds") }
    },
    "GET /problems/{slug}": {
      id: "getProblem",
      summary: "What a kind of problem is, and what to do about it",
      answers: { 200: view("ProblemType", "The kind") }
    },
    "GET /openapi.json": conditional({
      id: "getOpenapi",
      summary: "This document",
      problems: ["not-acceptable"],
      answers: {
        200: {
          description: "OpenAPI 3.1",
          content: { "application/json": document, "application/vnd.oai.openapi+json": document },
          headers: [...kept, "Vary"]
        },
        304: nothing("It is as the client has it", ["ETag"])
      }
    }),
    "GET /style.css": conditional(file("getStyle", "The stylesheet of all pages", "text/css")),
    "GET /page.js": file("getPageScript", "The script of all pages", "text/javascript"),
    "GET /live.js": file("getLiveScript", "The script of live pages", "text/javascript"),
    "GET /robots.txt": conditional(file("getRobots", "What robots leave alone", "text/plain")),
    "GET /favicon.ico": conditional(file("getIcon", "The icon of all pages", "image/svg+xml"))
  }
}
