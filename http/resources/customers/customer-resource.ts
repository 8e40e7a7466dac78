/** The operations of customers and of files of customers (C2). */
import { attributes, dateTime, digits, elementOrAttribute, elementText, list, object, oneOf, ref,
  type RequestBodyDescription, rootElement, text, uri, viewResponse,
  visibleText } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { rowOperations, rowQuery } from "../rows/index.ts"
import { customers, findCustomers, getLoad, putCustomers,
  sentFindForm } from "./customer-handlers.ts"
import { textCharsMax } from "./customer-input.ts"
import { ageMax, ageminMax, customersTable as table } from "./customer-table.ts"

const age = {
  type: ["string", "integer"],
  minimum: 0,
  maximum: ageMax,
  pattern: "^(1[0-4][0-9]|150|[0-9]{1,2})$"
}

const id = { type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" }

const field = { ...text, maxLength: textCharsMax }

/** The fields as clients send them. */
const sentFields = Object.fromEntries(
  table.fields.map(({ kind, name }) => [
    name,
    kind === "number" ? age : name === "name" ? { ...visibleText, maxLength: textCharsMax } : field
  ])
)

/** The fields of a representation. */
const shownFields = Object.fromEntries(
  table.fields.map(({ kind, name }) => [name, kind === "number" ? digits : text])
)

const file: RequestBodyDescription = {
  kind: "stream",
  required: true,
  description: "A stream. Every row names its id; all rows are stored, or none.",
  content: {
    "application/xml": ref("NewCustomers"),
    "text/xml": ref("NewCustomers"),
    "application/json": { anyOf: [ref("NewCustomers"), list(ref("NewCustomer"))] },
    "application/x-ndjson": { type: "string", description: "A customer as JSON on each line." },
    "text/csv": {
      type: "string",
      description: "RFC 4180 with a first line that names the columns, `id` among them."
    }
  }
}

export const customerResource: ResourceDefinition = {
  tag: "customers",
  about: "Customers, found by age or by query, and stored one by one or in files.",
  schemas: {
    NewCustomer: rootElement(
      "customer",
      {
        ...attributes({ href: uri }),
        ...Object.fromEntries(
          Object.entries({ id, ...sentFields }).map(([name, one]) => [
            name,
            elementOrAttribute(one)
          ])
        )
      },
      [
        "name",
        "age"
      ]
    ),
    NewCustomers: rootElement("customers", {
      customer: { anyOf: [ref("NewCustomer"), list(ref("NewCustomer"))] }
    }),
    Customer: rootElement("customer", { ...attributes({ href: uri }), id: text, ...shownFields }, [
      "href"
    ]),
    Customers: rootElement("customers", { customer: list(ref("Customer")) }, ["customer"]),
    Load: rootElement("load", {
      ...attributes({
        href: uri,
        rows: digits,
        read: digits,
        created: digits,
        replaced: digits,
        skipped: digits,
        started: dateTime,
        touched: dateTime,
        status: oneOf("pending", "done")
      }),
      problem: {
        anyOf: [ref("RowProblem"), list(ref("RowProblem"))],
        description: "The problems of skipped rows."
      }
    }, ["href", "status", "rows", "created", "replaced", "skipped"]),
    RowProblem: object({ ...attributes({ row: digits }), ...elementText("The problem.") })
  },
  operations: {
    "GET /customers": {
      handle: findCustomers,
      form: sentFindForm,
      id: "findCustomers",
      summary: "Finds customers by least age and by query",
      query: {
        agemin: {
          description: "The least age.",
          schema: {
            anyOf: [{ type: "integer", minimum: -ageminMax, maximum: ageminMax }, {
              type: "string",
              maxLength: 0
            }]
          }
        },
        ...rowQuery(table)
      },
      problems: ["unprocessable"],
      responses: { 200: viewResponse("Customers", "A page of the listing") }
    },
    "PUT /customers": {
      handle: putCustomers,
      id: "loadCustomers",
      summary: "Stores a whole file of customers, for the role customers",
      description: "With `Prefer: handling=lenient` rows with a fault are skipped; with "
        + "`respond-async` the answer does not wait. After 503 `storage-unavailable` or without an "
        + "answer the file may have been accepted: repeat the request with the same "
        + "Idempotency-Key, which finds the load of the first upload.",
      needs: "role",
      scopes: ["admin"],
      headers: ["Prefer", "Idempotency-Key"],
      body: file,
      problems: ["unprocessable"],
      responses: {
        200: viewResponse("Load", "All rows are in the table", ["Location", "Preference-Applied?"]),
        202: viewResponse("Load", "The rows will be in the table", [
          "Location",
          "Preference-Applied?"
        ])
      }
    },
    ...rowOperations(customers, {
      fields: sentFields,
      create: "Creates a customer, whose id the service chooses",
      put: "Sets a customer, for the role customers",
      remove: "Removes a customer, for the role customers"
    }),
    "GET /loads/{load}": {
      handle: getLoad,
      id: "getLoad",
      summary: "Reads the progress of a load",
      isNeverGone: true,
      responses: { 200: viewResponse("Load", "The progress") }
    }
  }
}
