/** The operations of queries. */
import { attributes, dateTime, documentRequestBody, emptyResponse, formSchema, list, object, oneOf,
  type OperationGroup, pagingParameters, ref, rootElement, type Schema, seeOtherResponse, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import { operators } from "../../query-engine/index.ts"

const on = oneOf("customers", "quotes")

/** One element, or an array. */
const some = (schema: Schema): Schema => ({ anyOf: [schema, list(schema)] })

const conditions = {
  where: some(ref("Where")),
  all: some(ref("Conditions")),
  any: some(ref("Conditions")),
  not: some(ref("Conditions"))
}

const order = attributes({ by: text, direction: oneOf("asc", "desc") })

const controls = ["1", "2", "3"].flatMap((at) => [`field${at}`, `op${at}`, `value${at}`])

const form = formSchema(
  [
    "method",
    "title",
    "on",
    "match",
    ...controls,
    "return",
    "order",
    "direction",
    "limit",
    "document"
  ]
)

export const queryOperations: OperationGroup = {
  tag: "queries",
  about: "Queries that are too much for an address, as resources of their own.",
  schemas: {
    Where: object({
      ...attributes({ field: text, op: oneOf(...operators) }),
      value: { type: ["string", "number"], xml: { attribute: true } },
      "#text": { type: ["string", "number"] }
    }, ["field"]),
    Conditions: {
      anyOf: [
        object(conditions),
        { const: "", description: "None: `all` holds then, and `any` does not." }
      ]
    },
    Query: rootElement("query", {
      ...attributes({ on, href: uri, expires: dateTime }),
      title: text,
      ...conditions,
      return: text,
      order: object(order, ["by"]),
      limit: { type: ["string", "integer"] }
    }, ["on"]),
    Queries: rootElement("queries", {
      query: list(object(attributes({ href: uri, on, title: text }), ["href", "on"]))
    }, ["query"])
  },
  operations: {
    "GET /queries": {
      id: "listQueries",
      summary: "The caller's own queries; none without an account",
      needs: "anyone",
      query: pagingParameters,
      responses: { 200: viewResponse("Queries", "A page of them") }
    },
    "POST /queries": {
      id: "createQuery",
      summary: "Makes a query; its link `edit` is for who may change it",
      needs: "anyone",
      body: documentRequestBody("Query", { form }),
      responses: { 201: viewResponse("Query", "The query", ["Location", "Link"]) }
    },
    "GET /queries/{query}": {
      id: "getQuery",
      summary: "A query",
      problems: ["gone"],
      responses: { 200: viewResponse("Query", "The query", ["Link"]) }
    },
    "PUT /queries/{query}": {
      id: "replaceQuery",
      summary: "Another query in its place, at the edit URI or by its owner",
      needs: "anyone",
      body: documentRequestBody("Query"),
      problems: ["unauthenticated", "gone"],
      responses: { 200: viewResponse("Query", "The query as it is now", ["Link"]) }
    },
    "POST /queries/{query}": {
      id: "changeQueryByForm",
      summary: "PUT, or with `method=delete` DELETE, for a page's form",
      needs: "anyone",
      body: documentRequestBody("Query", { form }),
      problems: ["unauthenticated", "gone", "precondition-failed"],
      responses: { 303: seeOtherResponse }
    },
    "DELETE /queries/{query}": {
      id: "deleteQuery",
      summary: "Removes a query, at the edit URI or by its owner",
      needs: "anyone",
      problems: ["unauthenticated", "gone"],
      responses: { 204: emptyResponse("It is removed") }
    }
  }
}
