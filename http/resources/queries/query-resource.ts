/** The operations of queries. */
import { conditionNodesMax, queryLimitMax, titleCharsMax, valueCharsMax } from "../../limits.ts"
import { controls, tables } from "./query-forms.ts"
import { attributes, changeByForm, dateTime, documentRequestBody, formSchema, list, object, oneOf,
  pagingParameters, ref, rootElement, type Schema, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import { fieldNames, fieldsPattern, operators } from "../../query-engine/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { deleteQuery, getQueries, getQuery, postQueries, postQueryForm, putQuery,
  sentQueryForm } from "./query-handlers.ts"

const on = oneOf("customers", "quotes")

/** No condition: `all` is true, `any` is false. */
const none: Schema = { type: "string", maxLength: 0, description: "No condition." }

/** One element, or an array. */
const some = (...schemas: ReadonlyArray<Schema>): Schema => ({
  anyOf: [
    ...schemas,
    {
      ...list(schemas.length === 1 ? schemas[0] ?? {} : { anyOf: schemas }),
      maxItems: conditionNodesMax
    }
  ]
})

const conditions = {
  where: some(ref("Where")),
  all: some(ref("Conditions"), none),
  any: some(ref("Conditions"), none),
  not: some(ref("Conditions"))
}

/** The fields of a customer or of a quote. */
const field = oneOf(...new Set(tables.flatMap(fieldNames)))

/** Without a `maximum`: a number counts as the text that JSON has for it. */
const value = {
  type: ["string", "number"],
  pattern: text["pattern"],
  maxLength: valueCharsMax,
  description: `A number is taken as it is written, in ${valueCharsMax} characters at the most.`
}

const order = attributes({ by: field, direction: oneOf("asc", "desc") })

const form = formSchema([
  "method",
  "version",
  "document",
  ...(controls() ?? []).map(({ name }) => name)
])

export const queryResource: ResourceDefinition = {
  tag: "queries",
  about: "Queries that are too long for a URI.",
  schemas: {
    Where: object({
      ...attributes({ field, op: oneOf(...operators), value }),
      text: value
    }, ["field"]),
    Conditions: object(conditions),
    Query: rootElement("query", {
      ...attributes({ on, href: uri, expires: { ...dateTime, readOnly: true } }),
      title: { ...text, maxLength: titleCharsMax },
      ...conditions,
      return: { type: "string", pattern: fieldsPattern(tables) },
      order: object(order, ["by"]),
      limit: {
        type: ["string", "integer"],
        pattern: "^([1-9][0-9]{0,8}|1000000000)$",
        minimum: 1,
        maximum: queryLimitMax
      }
    }, ["on"]),
    Queries: rootElement("queries", {
      query: list(object(attributes({ href: uri, on, title: text }), ["href", "on"]))
    }, ["query"])
  },
  operations: {
    "GET /queries": {
      handle: getQueries,
      id: "listQueries",
      summary: "Lists the caller's own queries; none without an account",
      needs: "anyone",
      scopes: ["read", "admin"],
      query: pagingParameters,
      responses: { 200: viewResponse("Queries", "A page of the listing") }
    },
    "POST /queries": {
      handle: postQueries,
      form: sentQueryForm,
      id: "createQuery",
      summary: "Creates a query; its link `edit` authorizes changes",
      needs: "anyone",
      scopes: ["admin"],
      body: documentRequestBody("Query", { form }),
      problems: ["quota-exceeded"],
      responses: { 201: viewResponse("Query", "The query", ["Link"]) }
    },
    "GET /queries/{query}": {
      handle: getQuery,
      id: "getQuery",
      summary: "Reads a query",
      responses: { 200: viewResponse("Query", "The query", ["Link"]) }
    },
    "PUT /queries/{query}": {
      handle: putQuery,
      id: "replaceQuery",
      summary: "Replaces a query, at the edit URI or by its owner",
      needs: "anyone",
      scopes: ["admin"],
      body: documentRequestBody("Query"),
      problems: ["quota-exceeded"],
      responses: { 200: viewResponse("Query", "The changed query", ["Link"]) }
    },
    "POST /queries/{query}": {
      handle: postQueryForm,
      form: sentQueryForm,
      ...changeByForm("Query", "Query", form, "anyone", ["admin"]),
      problems: ["precondition-failed", "quota-exceeded"]
    },
    "DELETE /queries/{query}": {
      handle: deleteQuery,
      id: "deleteQuery",
      summary: "Removes a query, at the edit URI or by its owner",
      needs: "anyone",
      scopes: ["admin"]
    }
  }
}
