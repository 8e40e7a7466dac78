/** The operations of `/`, the problems, the static files and `/openapi.json`. */
import { attribute, attributes, digits, type DocumentPart, list, object, rootElement, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { HttpSettings } from "../../pipeline/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { getHome, getProblem, getProblems } from "./home-handlers.ts"
import { fileOperations, openapiOperation, securityOperation } from "./static-files.ts"

/** `document` makes the OpenAPI document of all resources. */
export const homeResource = (
  document: (settings: HttpSettings) => DocumentPart
): ResourceDefinition => ({
  tag: "service",
  about: "The entry points of the service, its problems and its files.",
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
      handle: getHome,
      id: "getService",
      summary: "Lists the entry points of the service; a browser gets its home page",
      query: {
        mailbox: {
          description: "The mailbox of the forms on the page.",
          schema: text
        }
      },
      responses: { 200: viewResponse("Service", "The entry points", ["Link"]) }
    },
    "GET /problems": {
      handle: getProblems,
      id: "listProblems",
      summary: "Lists every type of problem of the service",
      responses: { 200: viewResponse("ProblemTypes", "All types") }
    },
    "GET /problems/{slug}": {
      handle: getProblem,
      id: "getProblem",
      summary: "Explains a type of problem, and what to do",
      isNeverGone: true,
      responses: { 200: viewResponse("ProblemType", "The type") }
    },
    "GET /openapi.json": openapiOperation(document),
    "GET /.well-known/security.txt": securityOperation,
    ...fileOperations
  }
})
